import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'oxc-parser'
import { expect, test } from 'vitest'
import { isContainer, mapOf, type Node, rootNode } from './node.ts'

// Error texts, help, logs and comments refer the operator to configuration keys. Every key that they name
// must exist.

const root = join(import.meta.dirname, '../../..')
const sections = Object.entries(rootNode.properties ?? {})
  .filter(([, node]) => isContainer(node))
  .map(([name]) => name)
// In backticks, which may be escaped inside of a template.
const named = new RegExp(
  String.raw`\\?\`((?:${sections.join('|')})(?:\.[a-z0-9_<>[\]]+)+)\\?\``,
  'g',
)
// Names of files, such as `database.ts`, and members of `/status`.
const notKeys = /\.(?:ts|js|md|json|yaml|sql)$|^chains\.q\.pending_transactions$/

function exists(path: string): boolean {
  let nodes: Node[] = [rootNode]
  for (const part of path.replaceAll(/\[\d*\]/g, '').split('.')) {
    nodes = nodes.flatMap((node) => {
      const inner = node.items ?? node
      return [inner.properties?.[part], mapOf(inner)?.entry].filter((found) => found !== undefined)
    })
  }
  return nodes.length > 0
}

const keysIn = (text: string): string[] =>
  [...text.matchAll(named)].map(([, key = '']) => key).filter((key) => !notKeys.test(key))

/** The text of all string literals, templates and comments of a source file. */
function textsOf(file: string): string[] {
  const source = readFileSync(file, 'utf8')
  const { program, comments } = parseSync(file, source)
  const texts = comments.map(({ value }) => value)
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const { type, start, end } = value as { type?: string; start: number; end: number }
    if (type === 'Literal' || type === 'TemplateLiteral') texts.push(source.slice(start, end))
    for (const child of Object.values(value)) visit(child)
  }
  visit(program)
  return texts
}

const filesBelow = (folder: string, end: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(end) && !/test\.ts$/.test(name))
    .map((name) => join(folder, name))

test('every configuration key that a text of the source names exists', () => {
  const files = filesBelow('src', '.ts')
  const found = files.flatMap((file) =>
    textsOf(join(root, file)).flatMap((text) => keysIn(text).map((key) => ({ file, key }))),
  )
  expect(found.length).toBeGreaterThan(20)
  expect(found.filter(({ key }) => !exists(key))).toEqual([])
})

test('every configuration key that a document names exists', () => {
  const files = ['README.md', ...filesBelow('docs', '.md')]
  const found = files.flatMap((file) =>
    keysIn(readFileSync(join(root, file), 'utf8')).map((key) => ({ file, key })),
  )
  expect(found.length).toBeGreaterThan(100)
  expect(found.filter(({ key }) => !exists(key))).toEqual([])
})

test.each([
  'server.request_timeout',
  'server.port.x',
  'gateway.nothing',
  'chains.x',
  'database.uri',
])('the check finds that %s does not exist', (key) =>
  expect([keysIn(`see \`${key}\``), exists(key)]).toEqual([[key], false]),
)
