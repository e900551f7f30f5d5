import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { serverRoles } from '../../src/app/config/server-roles.ts'
import { about, chart, type Manifest, readManifests, render, usual, variants } from './chart.ts'
import { root } from './expressions.ts'
import { findTypeErrors } from './manifest-types.ts'
import { needTool, runTool } from './tools.ts'

const kinds = (manifests: readonly Manifest[]) => manifests.map(({ kind }) => kind).sort()

it('renders manifests of known kinds, with names and labels', () => {
  const manifests = render()
  expect(kinds(manifests)).toEqual([
    'ConfigMap',
    'Deployment',
    'NetworkPolicy',
    'PodDisruptionBudget',
    'Service',
  ])
  const versions: Record<string, string> = {
    ...{ ConfigMap: 'v1', Service: 'v1', Deployment: 'apps/v1', PodDisruptionBudget: 'policy/v1' },
    ...{ NetworkPolicy: 'networking.k8s.io/v1', HorizontalPodAutoscaler: 'autoscaling/v2' },
  }
  for (const { apiVersion, kind, metadata } of render({
    autoscaling: { ...usual.autoscaling, enabled: true },
  })) {
    expect([kind, apiVersion]).toEqual([kind, versions[kind]])
    expect(metadata.name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    for (const value of Object.values<string>(metadata.labels))
      expect(value).toMatch(/^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/)
  }
})

it('gives pods probes, secrets by reference and no rights', () => {
  const [{ spec }] = render().filter(({ kind }) => kind === 'Deployment')
  const pod = spec.template.spec
  const [container] = pod.containers
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'])
    expect(container[probe].httpGet.path).toMatch(/^\/(?:health|ready)$/)
  const ports = container.ports.map((port: { name: string }) => port.name)
  expect(ports).toContain(container.readinessProbe.httpGet.port)
  for (const variable of container.env)
    expect(
      variable.value === '/etc/portolan/portolan.yaml' || variable.valueFrom.secretKeyRef,
    ).toBeTruthy()
  expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65_532 })
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
  const mounted = container.volumeMounts.map((mount: { name: string }) => mount.name)
  expect(mounted).toEqual(pod.volumes.map((volume: { name: string }) => volume.name))
  expect(container.args).toBeUndefined()
  expect(container.image).toBe(`portolan:${about.appVersion}`)
})

it('selects with every selector what the deployments label', () => {
  const all = render({ workers: { ...usual.workers, enabled: true } })
  const deployments = all.filter(({ kind }) => kind === 'Deployment')
  const [service] = all.filter(({ kind }) => kind === 'Service')
  const isSelected = (labels: object, selector: object) =>
    Object.entries(selector).every(([key, value]) => (labels as Manifest)[key] === value)
  for (const { spec } of deployments)
    expect(isSelected(spec.template.metadata.labels, spec.selector.matchLabels)).toBe(true)
  const served = deployments.filter(({ spec }) =>
    isSelected(spec.template.metadata.labels, service.spec.selector),
  )
  expect(served.map(({ metadata }) => metadata.name)).toEqual(['shop'])
  for (const kind of ['NetworkPolicy', 'PodDisruptionBudget']) {
    const [{ spec }] = all.filter((one) => one.kind === kind)
    const { matchLabels } = spec.selector ?? spec.podSelector
    for (const one of deployments)
      expect(isSelected(one.spec.template.metadata.labels, matchLabels)).toBe(true)
  }
})

it('runs roles in deployments of their own', () => {
  const workers = { ...usual.workers, enabled: true, replicaCount: 3 }
  const roles = ['api', 'gateway', 'console']
  const made = render({ workers, roles }).filter(({ kind }) => kind === 'Deployment')
  expect(
    made.map(({ metadata, spec }) => [
      ...[metadata.name, spec.replicas, spec.template.spec.containers[0].args],
    ]),
  ).toEqual([
    ['shop', 2, ['start', '--roles', 'api,gateway,console']],
    ['shop-workers', 3, ['start', '--roles', 'tracker,courier,sender']],
  ])
  expect([...roles, ...workers.roles].sort()).toEqual([...serverRoles].sort())
})

it('scales by the CPU, and by requests where a metric is named', () => {
  const autoscaling = { ...usual.autoscaling, enabled: true, requestsMetric: 'requests' }
  const made = render({ autoscaling })
  const [{ spec }] = made.filter(({ kind }) => kind === 'HorizontalPodAutoscaler')
  expect(spec.metrics.map(({ type }: { type: string }) => type)).toEqual(['Resource', 'Pods'])
  expect(spec.metrics[1].pods.target).toEqual({ type: 'AverageValue', averageValue: '500' })
  expect(spec.scaleTargetRef.name).toBe('shop')
  const [deployment] = made.filter(({ kind }) => kind === 'Deployment')
  expect(deployment.spec).not.toHaveProperty('replicas')
})

it('renders what Kubernetes 1.30 accepts, without unknown fields', () => {
  expect(findTypeErrors(Object.values(variants).flatMap((changed) => render(changed)))).toEqual([])
  const [unknown, mistyped] = [render(), render()].map((all) =>
    all.find(({ kind }) => kind === 'Deployment'),
  )
  unknown.spec.replica = 1
  mistyped.spec.template.spec.containers[0].ports[0].containerPort = 'http'
  expect(findTypeErrors([unknown, mistyped])).toEqual([
    expect.stringContaining(`'"replica"' does not exist in type 'DeploymentSpec'`),
    expect.stringContaining("'string' is not assignable to type 'number'"),
  ])
})

it.for(Object.keys(variants))('renders what helm renders, with %s', (name, context) => {
  needTool(context, 'helm', 'version')
  const folder = mkdtempSync(join(tmpdir(), 'portolan-values-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const values = join(folder, 'values.json')
  writeFileSync(values, JSON.stringify(variants[name]))
  const place = join(root, chart)
  const linted = runTool('helm', ['lint', '--strict', place, '--values', values])
  expect([linted.status, linted.text]).toEqual([0, linted.text])
  const rendered = runTool('helm', ['template', 'shop', place, '--values', values])
  expect([rendered.status, rendered.text]).toEqual([0, rendered.text])
  expect(comparable(readManifests(rendered.text))).toEqual(comparable(render(variants[name])))
})

/** In one order, and without the spaces of YAML inside of the configuration: helm sorts its keys. */
const comparable = (manifests: readonly Manifest[]): Manifest[] =>
  manifests
    .map((manifest) => {
      const one = structuredClone(manifest)
      if (one.kind === 'ConfigMap') [one.data] = readManifests(one.data['portolan.yaml'])
      delete one.spec?.template?.metadata?.annotations?.['checksum/config']
      return one
    })
    .sort((a, b) => (`${a.kind} ${a.metadata.name}` < `${b.kind} ${b.metadata.name}` ? -1 : 1))
