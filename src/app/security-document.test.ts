import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')

it('every test that SECURITY.md names for a control exists', () => {
  const text = readFileSync(join(root, 'SECURITY.md'), 'utf8')
  const files = [...text.matchAll(/`((?:src|test|devnet)\/[\w./-]+)`/g)].map(([, file]) => file!)
  expect(files.length).toBeGreaterThan(25)
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
})
