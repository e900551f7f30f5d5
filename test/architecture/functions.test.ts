import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'oxc-parser'
import { expect, test } from 'vitest'

// A function that holds everything cannot be read in parts or tested in parts. Beyond this length it is split by subsystem.

const root = join(import.meta.dirname, '../..')
const maxLines = 200

/** Longer ones, with the reason. */
const exceptions: Record<string, string> = {
  'http/fast-path/bare-sockets.ts createBareSockets': 'contains `accept`',
  'http/fast-path/bare-sockets.ts accept':
    'The state of one connection, in one scope: a small call costs 49 µs, and split in two parts reading and writing would reach each other through objects.',
  'app/cluster/supervisor.ts startSupervisor':
    'The order in which a service starts, which is undone in reverse: parts of it use most of what began before them.',
}

/** The functions of a source with their lines; one without a name has that of what it is assigned to. */
function functionsOf(file: string): { name: string; lines: number }[] {
  const text = readFileSync(join(root, 'src', file), 'utf8')
  const found: { name: string; lines: number }[] = []
  const linesOf = (start: number, end: number) => text.slice(start, end).split('\n').length
  const visit = (node: unknown, near: string): void => {
    if (Array.isArray(node)) for (const one of node) visit(one, near)
    else if (typeof node === 'object' && node !== null) {
      const { type, start, end, id, key } = node as Record<string, unknown>
      const own = nameOf(id) ?? nameOf(key)
      if (/^(?:Function|ArrowFunction)/.test(String(type)))
        found.push({ name: own ?? near, lines: linesOf(Number(start), Number(end)) })
      for (const part of Object.values(node)) visit(part, own ?? near)
    }
  }
  visit(parseSync(file, text).program, '')
  return found
}

const nameOf = (node: unknown): string | undefined =>
  typeof node === 'object' && node !== null && 'name' in node ? String(node.name) : undefined

const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .map((name) => name.replaceAll('\\', '/'))
  // The callback of a suite is a list of cases and has no state of its own to follow.
  .filter((name) => name.endsWith('.ts') && !/\.(?:test|itest|test-d)\.ts$/.test(name))

test(`no function has more than ${maxLines} lines`, () => {
  const long = sources.flatMap((file) =>
    functionsOf(file)
      .filter(({ lines }) => lines > maxLines)
      .map(({ name }) => `${file} ${name}`),
  )
  // Equal, so that an exception goes with its function.
  expect(long.sort()).toEqual(Object.keys(exceptions).sort())
})
