import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

// docs/glossary.md holds the words of the domain, and the code uses each of them for one thing.

const root = join(import.meta.dirname, '../..')
const glossary = readFileSync(join(root, 'docs/glossary.md'), 'utf8')
const words = [...glossary.matchAll(/^\| (?!Word|---)([^|]+?) \|/gm)].map(([, word]) => word!)

const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => readFileSync(join(root, 'src', name), 'utf8'))

test('it has 30 to 40 words, each once', () => {
  expect(words.length).toBeGreaterThanOrEqual(30)
  expect(words.length).toBeLessThanOrEqual(40)
  expect(new Set(words).size).toBe(words.length)
})

test('a type with the name of a word exists once', () => {
  const typeNames = sources.flatMap((text) =>
    [...text.matchAll(/^export type (\w+)/gm)].map(([, name]) => name!),
  )
  const twice = words
    .map((word) => word.replace(/(?:^| )(\w)/g, (_, letter: string) => letter.toUpperCase()))
    .filter((name) => typeNames.filter((known) => known === name).length > 1)
  expect(twice).toEqual([])
})

test('the names of code in its entries exist', () => {
  const named = [...glossary.matchAll(/`([A-Z]\w+|\w+_\w+)`/g)].map(([, name]) => name!)
  expect(named.length).toBeGreaterThan(0)
  const missing = named.filter(
    (name) => !sources.some((text) => new RegExp(`\\b${name}`).test(text)),
  )
  expect(missing).toEqual([])
})
