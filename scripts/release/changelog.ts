/** What CHANGELOG.md says of one version, without its heading; undefined when it has no such section. */
export function findSection(changelog: string, version: string): string | undefined {
  const lines = changelog.split('\n')
  const begin = lines.findIndex((line) => isHeading(line, version))
  if (begin === -1) return undefined
  const length = lines.slice(begin + 1).findIndex((line) => line.startsWith('## '))
  const body = lines.slice(begin + 1, length === -1 ? undefined : begin + 1 + length)
  return body.join('\n').trim()
}

/** Whether the section says that the version is not released yet. */
export const isUnreleased = (changelog: string, version: string): boolean =>
  changelog.split('\n').includes(`## ${version} (unreleased)`)

/** The changelog with the day of the release in place of `(unreleased)`. */
export const withDate = (changelog: string, version: string, day: string): string =>
  changelog
    .split('\n')
    .map((line) => (line === `## ${version} (unreleased)` ? `## ${version} (${day})` : line))
    .join('\n')

const isHeading = (line: string, version: string): boolean =>
  line === `## ${version}` || line.startsWith(`## ${version} (`)
