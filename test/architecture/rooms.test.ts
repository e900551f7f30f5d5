import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { entries } from './rooms.ts'

// A folder shows only its entries to the outside (docs/architecture.md), and `rooms.ts` lists them. A reader begins
// there, and every other file can change without a look at the rest of the code.

const root = join(import.meta.dirname, '../..')
const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.replaceAll('\\', '/'))
const isTest = (file: string) => /\.(?:test|itest|test-d)\.ts$/.test(file)
const isTesting = (file: string) => isTest(file) || `/${file}`.includes('/testing/')

/** Imports of production code, as pairs of files below `src`. */
const imports = sources
  .filter((file) => !isTesting(file))
  .flatMap((file) =>
    [
      ...readFileSync(join(root, 'src', file), 'utf8').matchAll(
        /(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']+)'/g,
      ),
    ]
      .map(([, path]) => ({ from: file, to: join(dirname(file), path!).replaceAll('\\', '/') }))
      .filter(({ to }) => !to.startsWith('..')),
  )

test('production code imports nothing from a testing folder or a test', () => {
  expect(imports.filter(({ to }) => isTesting(to))).toEqual([])
})

test('a folder is imported from outside through its entries only', () => {
  const found = imports.filter(({ from, to }) => {
    const room = dirname(to)
    const isOutside = !`${dirname(from)}/`.startsWith(`${room}/`)
    return isOutside && entries[room] !== undefined && !entries[room].includes(nameOf(to))
  })
  expect(found).toEqual([])
})

test('every entry is imported from outside of its folder', () => {
  const unused = Object.entries(entries).flatMap(([room, names]) =>
    names
      .filter(
        (name) =>
          !imports.some(
            ({ from, to }) =>
              to === `${room}/${name}.ts` && !`${dirname(from)}/`.startsWith(`${room}/`),
          ),
      )
      .map((name) => `${room}/${name}`),
  )
  expect(unused).toEqual([])
})

test('every folder has its entries listed', () => {
  const folders = new Set(sources.filter((file) => !isTesting(file)).map((file) => dirname(file)))
  // `main.ts` is started, not imported.
  folders.delete('.')
  expect(Object.keys(entries).sort()).toEqual([...folders].sort())
})

test('an entry of every folder begins with its purpose', () => {
  const begins = /^(?:\/\/.*\n)+\n/
  const without = Object.entries(entries).filter(([room, names]) => {
    // Without an entry the folder only holds others, or is started by name: any file may say it.
    const files = sources.filter((file) => dirname(file) === room && !isTest(file))
    const own = names.length > 0 ? names.map((name) => `${room}/${name}.ts`) : files
    return !own.some((file) => begins.test(readFileSync(join(root, 'src', file), 'utf8')))
  })
  expect(without.map(([room]) => room)).toEqual([])
})

const nameOf = (file: string): string => file.slice(file.lastIndexOf('/') + 1, -'.ts'.length)
