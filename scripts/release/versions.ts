import { parseDocument } from 'yaml'

/** The files that name the version, beside the lock file, which npm writes. */
export const manifests: readonly string[] = [
  'package.json',
  'client/package.json',
  'console/package.json',
  'devnet/package.json',
]

const pattern = /^(\d+)\.(\d+)\.(\d+)(?:-[0-9A-Za-z.-]+)?$/

/** Why a version cannot follow the tags of the repository; undefined when it can. */
export function versionProblem(version: string, tags: readonly string[]): string | undefined {
  const parts = pattern.exec(version)
  if (!parts) return `"${version}" is not a version such as 1.2.3.`
  if (tags.includes(`v${version}`)) return `The tag v${version} exists already.`
  const newer = tags.find((tag) => {
    const other = pattern.exec(tag.slice(1))
    return other !== null && compare(other, parts) > 0
  })
  return newer && `The tag ${newer} is newer than ${version}.`
}

function compare(a: readonly string[], b: readonly string[]): number {
  for (const index of [1, 2, 3]) {
    const difference = Number(a[index]) - Number(b[index])
    if (difference !== 0) return difference
  }
  return 0
}

/** A manifest with the version, also where it depends on another package of the repository. */
export function withVersion(manifest: string, version: string): string {
  const fields = JSON.parse(manifest)
  fields.version = version
  for (const list of ['dependencies', 'devDependencies'])
    if (fields[list]?.['@portolan/client'] !== undefined) fields[list]['@portolan/client'] = version
  return `${JSON.stringify(fields, null, 2)}\n`
}

/** The description of the chart with the version of the service. */
export function withAppVersion(chart: string, version: string): string {
  const document = parseDocument(chart)
  document.set('version', version)
  document.set('appVersion', version)
  return document.toString()
}
