import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { findSection, isUnreleased, withDate } from '../../scripts/release/changelog.ts'
import { manifests, versionProblem, withVersion } from '../../scripts/release/versions.ts'
import { root } from './installation.ts'

const changelog =
  '# Changelog\n\n## 1.1.0 (unreleased)\n\nNew.\n\n## 1.0.0 (2026-01-01)\n\nFirst.\n'

test('the section of a version, and its day', () => {
  expect(findSection(changelog, '1.1.0')).toBe('New.')
  expect(findSection(changelog, '1.0.0')).toBe('First.')
  expect(findSection(changelog, '1.0')).toBeUndefined()
  expect(isUnreleased(changelog, '1.1.0')).toBe(true)
  const dated = withDate(changelog, '1.1.0', '2026-02-03')
  expect(dated).toContain('## 1.1.0 (2026-02-03)\n')
  expect(isUnreleased(dated, '1.1.0')).toBe(false)
})

test.each([
  ['1.2.3', [], undefined],
  ['1.2.3', ['v1.2.2', 'v0.9.0'], undefined],
  ['1.2.3-rc.1', ['v1.2.2'], undefined],
  ['1.2', [], '"1.2" is not a version such as 1.2.3.'],
  ['1.2.3', ['v1.2.3'], 'The tag v1.2.3 exists already.'],
  ['1.2.3', ['v1.10.0'], 'The tag v1.10.0 is newer than 1.2.3.'],
])('%s after %o', (version, tags, problem) => {
  expect(versionProblem(version, tags)).toBe(problem)
})

test('all packages have the same version, and get the next one together', () => {
  for (const path of manifests) {
    const text = readFileSync(join(root, path), 'utf8')
    expect(JSON.parse(text).version).toBe(manifest.version)
    // Nothing but the version changes.
    expect(withVersion(text, manifest.version)).toBe(text)
    expect(JSON.parse(withVersion(text, '9.9.9')).version).toBe('9.9.9')
  }
})

const isOpen = isUnreleased(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), manifest.version)

test.runIf(isOpen)('without options it only shows what it would do', () => {
  const args = [join(root, 'scripts/release/release.ts'), '--version', manifest.version]
  const text = execFileSync(process.execPath, args, { encoding: 'utf8' })
  expect(text).toContain('changes   CHANGELOG.md\n')
  expect(text).toContain(`Release notes of v${manifest.version}:`)
  expect(text).toContain('Nothing was changed.')
})

test('it publishes in the release workflow only', () => {
  const args = [join(root, 'scripts/release/release.ts'), '--publish']
  const publish = () =>
    execFileSync(process.execPath, args, { encoding: 'utf8', env: { PATH: process.env.PATH } })
  expect(publish).toThrow(/CHANGELOG\.md says that [\d.]+ is unreleased|Provenance needs/)
})

test('the bill of materials has the packages of production', { timeout: 120_000 }, () => {
  const text = execFileSync(
    process.execPath,
    [join(root, 'scripts/release/bill-of-materials.ts'), '-'],
    { encoding: 'utf8', maxBuffer: 2 ** 26 },
  )
  const { bomFormat, components } = JSON.parse(text) as {
    bomFormat: string
    components: { name: string; version: string; licenses?: unknown[] }[]
  }
  expect(bomFormat).toBe('CycloneDX')
  const names = new Set(components.map(({ name }) => name))
  for (const name of Object.keys(manifest.dependencies)) expect(names).toContain(name)
  for (const name of ['vitest', 'typescript', '@ton/sandbox', 'viem'])
    expect(names).not.toContain(name)
})
