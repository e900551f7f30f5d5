import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'

// The linter's rule for cycles ignores `import type`. A cycle through types still means that neither file
// can be read without the other, so this test builds the graph of every import.

const root = join(import.meta.dirname, '../..')

/** Imports by file, within `src`. */
const graph = new Map(listSources().map((file) => [file, importsOf(file)]))

test('no import cycle, type imports included', () => {
  expect(findCycles(graph)).toEqual([])
})

test('finds a cycle', () => {
  const small = new Map([
    ['a', ['b']],
    ['b', ['c']],
    ['c', ['b', 'd']],
    ['d', []],
  ])
  expect(findCycles(small)).toEqual([['b', 'c']])
})

/** Every import of a source file, type imports and dynamic imports included. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8')
  const found = text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']+)'/g)
  return [...found].map(([, path]) => relative(root, join(root, dirname(file), path!)))
}

function listSources(): string[] {
  return readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `src/${name.replaceAll('\\', '/')}`)
}

/** The strongly connected components of more than one file (Tarjan), each sorted. */
function findCycles(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  const found: string[][] = []
  const visit = (node: string): void => {
    index.set(node, index.size)
    low.set(node, index.get(node)!)
    stack.push(node)
    for (const next of graph.get(node) ?? []) {
      if (!graph.has(next)) continue
      if (!index.has(next)) visit(next)
      if (stack.includes(next)) low.set(node, Math.min(low.get(node)!, low.get(next)!))
    }
    if (low.get(node) !== index.get(node)) return
    const component = stack.splice(stack.indexOf(node))
    if (component.length > 1) found.push(component.sort())
  }
  for (const node of graph.keys()) if (!index.has(node)) visit(node)
  return found.sort()
}
