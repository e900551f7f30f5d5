import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { printTypes } from './print-types.ts'

const client = join(import.meta.dirname, '..')
const repository = join(client, '..')
// A test builds somewhere else, so that two of them do not get into each other's way.
const dist = resolve(process.argv[2] ?? join(client, 'dist'))
const emit = join(dist, '.emit')
const emitted = join(emit, 'client', 'src')

rmSync(dist, { recursive: true, force: true })
mkdirSync(dist, { recursive: true })
const tsc = join(repository, 'node_modules/.bin/tsc')
execFileSync(tsc, ['-p', join(client, 'build'), '--outDir', emit], { stdio: 'inherit' })
for (const name of readdirSync(emitted)) {
  const text = readFileSync(join(emitted, name), 'utf8')
  const published = text
    .replace(/'(?:\.\.\/)+src\/contract\/[\w/-]+\.(?:ts|js)'/g, "'./contract.js'")
    .replace(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'")
  // Editors show the comments of the types.
  const isCode = name.endsWith('.js')
  writeFileSync(join(dist, name), isCode ? withoutComments(published) : published)
}

/** Only comments that have lines of their own: no string of the client begins a line. */
function withoutComments(text: string): string {
  return text.replace(/^\s*\/\*\*[\s\S]*?\*\/\n/gm, '').replace(/^\s*\/\/.*\n/gm, '')
}

writeFileSync(join(dist, 'contract.d.ts'), printTypes())
rmSync(emit, { recursive: true })

const {
  private: _,
  scripts: __,
  exports: ___,
  ...manifest
} = JSON.parse(readFileSync(join(client, 'package.json'), 'utf8'))
const published = {
  ...manifest,
  engines: { node: '>=20' },
  sideEffects: false,
  exports: { '.': { types: './index.d.ts', default: './index.js' } },
  publishConfig: { access: 'public' },
}
writeFileSync(join(dist, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
cpSync(join(client, 'README.md'), join(dist, 'README.md'))
cpSync(join(client, 'examples'), join(dist, 'examples'), { recursive: true })
cpSync(join(repository, 'LICENSE'), join(dist, 'LICENSE'))
