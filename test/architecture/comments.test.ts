import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

// A person who inherits the code needs its reasons. CONTRIBUTING.md says what is counted.

const src = join(import.meta.dirname, '../../src')

const counted = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(
  (name) =>
    name.endsWith('.ts') &&
    !/\.(?:test|itest|test-d)\.ts$/.test(name) &&
    !/(?:^|[\\/])testing[\\/]/.test(name),
)

/** The lines of a file that are comments. */
function commentsIn(lines: readonly string[]): number {
  let count = 0
  let isInside = false
  for (const line of lines.map((text) => text.trim())) {
    const isComment = isInside || line.startsWith('//') || line.startsWith('/*')
    if (isComment) count++
    if (isInside || line.startsWith('/*')) isInside = !line.includes('*/')
  }
  return count
}

test('comments are 12 to 20 % of the lines of the sources', () => {
  const files = counted.map((name) => readFileSync(join(src, name), 'utf8').trimEnd().split('\n'))
  const all = files.reduce((sum, lines) => sum + lines.length, 0)
  const share = files.reduce((sum, lines) => sum + commentsIn(lines), 0) / all
  expect(share).toBeGreaterThanOrEqual(0.12)
  expect(share).toBeLessThanOrEqual(0.2)
})
