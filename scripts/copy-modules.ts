// Copies installed packages without what no program loads: types, sources in TypeScript, source maps and documents.
// Licenses stay. The image uses it: `node scripts/copy-modules.ts node_modules target`.

import { cpSync, lstatSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'

const [from = 'node_modules', to = 'copied_modules'] = process.argv.slice(2)

const isUnused = (name: string): boolean =>
  /\.(?:ts|mts|cts|tsx|map|flow|tsbuildinfo|markdown|md)$/.test(name) &&
  !/license|notice/i.test(name)

cpSync(from, to, {
  recursive: true,
  filter: (path) => {
    const name = basename(path)
    // Links lead to the packages of the repository; `.bin` and the hidden lock file are of npm.
    if (lstatSync(path).isSymbolicLink() || (name.startsWith('.') && path !== from)) return false
    return !isUnused(name)
  },
})

const size = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + lstatSync(join(entry.parentPath, entry.name)).size, 0)

const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MB`
console.log(`${from}: ${megabytes(size(from))}, copied: ${megabytes(size(to))}`)
