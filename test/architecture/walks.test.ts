import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

// The walks of docs/architecture.md name the files that a reader opens, and their lines. Every edit changes a
// count a little, so a count may differ by a tenth; `node test/architecture/walk-counts.ts` writes the true ones.

const root = join(import.meta.dirname, '../..')
const text = readFileSync(join(root, 'docs/architecture.md'), 'utf8')

type Walk = { title: string; files: number; lines: number; rows: { file: string; lines: number }[] }

const walks = [
  ...text.matchAll(/^\*\*([^*]+)\*\*: (\d+) files, (\d+) lines\.\n\n((?:\|.*\n)+)/gm),
].map(
  ([, title, files, lines, table]): Walk => ({
    title: title!,
    files: Number(files),
    lines: Number(lines),
    rows: [...table!.matchAll(/^\| \d+ \| `([^`]+)` \| (\d+) \|/gm)].map(([, file, count]) => ({
      file: file!,
      lines: Number(count),
    })),
  }),
)

const linesOf = (file: string): number =>
  readFileSync(join(root, 'src', file), 'utf8').split('\n').length - 1

const isNear = (said: number, counted: number): boolean => Math.abs(said - counted) <= counted / 10

test('there are three walks, of ten files at most', () => {
  expect(walks.map(({ title }) => title)).toEqual([
    'An address from JSON to SQL',
    'A log from a node to a socket',
    'A transfer from a block to a POST',
  ])
  for (const { rows } of walks) expect(rows.length).toBeLessThanOrEqual(10)
})

test.each(walks)('$title: files exist and have the lines that the table says', (walk) => {
  const wrong = walk.rows
    .map(({ file, lines }) => ({ file, said: lines, counted: linesOf(file) }))
    .filter(({ said, counted }) => !isNear(said, counted))
  expect(wrong).toEqual([])
  expect(walk.files).toBe(walk.rows.length)
  expect(walk.lines).toBe(walk.rows.reduce((sum, { lines }) => sum + lines, 0))
})
