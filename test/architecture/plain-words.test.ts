import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

// Code, documents and tests use plain technical English. These words and phrases have a usual
// equivalent (notify, report, fix, resume), or hide who does what.
const root = join(import.meta.dirname, '../..')
const folders = [
  'bin',
  'src',
  'test',
  'docs',
  'client/src',
  'client/examples',
  'console/src',
  'devnet',
  'bench',
  'deploy',
  'scripts',
  'examples',
]
const documents = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'client/README.md',
]

const words =
  /\b(whoever|whomever|nobody|somebody|anybody|everybody|tells?|telling|told|mend(s|ed|ing)?)\b/i
const identifiers =
  /\b(goOn|mostAtOnce|LetIn|letIn|Patient|Scene|[a-z]+Told|tell[A-Z]\w*|[a-z]+Scene)\b/
const phrases =
  /stands? there twice|Is no URL|trying on|failed inside|\blook(s|ed|ing)? after\b|what cannot be true|Something went wrong that should not|is there already\. Give|plan of the house|\bsays so\b|without a word|by heart|\bgo(es)? on\b|thrown away|\b(is|are|was|were) away\b|\bby hand\b/

/** Terms of others that contain such a word, by file. */
const allowed: Record<string, RegExp> = {
  // The Unix user without rights.
  'src/storage/embedded/server-user.ts': /\bnobody\b/,
  // The list itself.
  'test/architecture/plain-words.test.ts': /./,
}

const filesBelow = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(
      (name) =>
        /\.([cm]?[jt]sx?|md|sql|sol|tolk|html|ya?ml|sh|lua)$/.test(name) &&
        !/(^|\/)(node_modules|dist)\//.test(name),
    )
    .map((name) => join(folder, name))

test('sources, tests and documents use plain words', () => {
  const found = [...folders.flatMap(filesBelow), ...documents].flatMap((path) =>
    readFileSync(join(root, path), 'utf8')
      .split('\n')
      .flatMap((line, index) => {
        const isBad = words.test(line) || identifiers.test(line) || phrases.test(line)
        return isBad && !allowed[path]?.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : []
      }),
  )
  expect(found).toEqual([])
})

test('every file that a document names exists', () => {
  const missing = [...filesBelow('docs'), ...documents].flatMap((path) =>
    [
      ...readFileSync(join(root, path), 'utf8').matchAll(
        /`((?:src|test|bench|scripts|client)\/[\w./-]+\.ts)`/g,
      ),
    ]
      .map(([, name]) => name as string)
      .filter((name) => !isThere(name))
      .map((name) => `${path}: ${name}`),
  )
  expect(missing).toEqual([])
})

const isThere = (name: string): boolean => {
  try {
    readFileSync(join(root, name))
    return true
  } catch {
    return false
  }
}
