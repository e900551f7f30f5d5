import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { read, root } from './expressions.ts'
import { renderTemplate } from './helm-template.ts'

/** The folder of the chart. */
export const chart = 'deploy/helm/portolan'

/** The values that the chart has by itself. */
export const usual = parse(read(`${chart}/values.yaml`))

/** What the chart says of itself. */
export const about: { name: string; version: string; appVersion: string } = parse(
  read(`${chart}/Chart.yaml`),
)

// biome-ignore lint/suspicious/noExplicitAny: tests look at members of any manifest
export type Manifest = any

/** Values that reach every template and every branch in them. */
export const variants: Record<string, object> = {
  'its own values': {},
  'roles in deployments of their own': {
    workers: { ...usual.workers, enabled: true },
    roles: ['api', 'gateway', 'console'],
  },
  autoscaling: { autoscaling: { ...usual.autoscaling, enabled: true, requestsMetric: 'requests' } },
}

/** The manifests of the chart with some values changed. */
export const render = (changed: object = {}): Manifest[] => {
  const { name, version, appVersion } = about
  const values = {
    Values: { ...usual, ...changed },
    Chart: { Name: name, Version: version, AppVersion: appVersion },
    Release: { Name: 'shop', Service: 'Helm' },
  }
  const definitions = read(`${chart}/templates/_helpers.tpl`)
  return readdirSync(join(root, chart, 'templates'))
    .filter((file) => file.endsWith('.yaml'))
    .flatMap((file) =>
      readManifests(renderTemplate(read(`${chart}/templates/${file}`), definitions, values)),
    )
}

/** The manifests of a YAML stream. */
export const readManifests = (text: string): Manifest[] =>
  [...parseAllDocuments(text)].flatMap((document) => {
    const [problem] = [...document.errors, ...document.warnings]
    if (problem) throw problem
    return document.toJS() ?? []
  })
