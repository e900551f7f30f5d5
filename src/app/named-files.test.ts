import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

// Comments and documents refer to other files. Each reference must lead to a file that exists.

const root = join(import.meta.dirname, '../..')

const filesBelow = (folder: string, end: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(end))
    .map((name) => join(folder, name))

const paths = /(?<![\w/.-])(?:docs|src|test|bench|scripts|devnet)\/[\w/.-]+\.(?:ts|md|sql|js)\b/g
const sections = /docs\/[\w/-]+\.md \d/g

const named = (files: readonly string[], pattern: RegExp) =>
  files.flatMap((file) =>
    (readFileSync(join(root, file), 'utf8').match(pattern) ?? []).map((path) => ({ file, path })),
  )

const documents = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', ...filesBelow('docs', '.md')]
const sources = filesBelow('src', '.ts')

test('every file that a document names exists', () => {
  const found = named(documents, paths)
  expect(found.length).toBeGreaterThan(100)
  expect(found.filter(({ path }) => !existsSync(join(root, path)))).toEqual([])
})

test('every document that a source names exists, and none is named by the number of a section', () => {
  const found = named(sources, /(?<![\w/.-])docs\/[\w/-]+\.md\b/g)
  expect(found.length).toBeGreaterThan(10)
  expect(found.filter(({ path }) => !existsSync(join(root, path)))).toEqual([])
  expect(named(sources, sections)).toEqual([])
})
