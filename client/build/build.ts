import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { printTypes } from './print-types.ts'

const client = join(import.meta.dirname, '..')
const repository = join(client, '..')
const dist = join(client, 'dist')
const emitted = join(dist, '.emit', 'client', 'src')

rmSync(dist, { recursive: true, force: true })
mkdirSync(dist)
execFileSync(join(repository, 'node_modules/.bin/tsc'), ['-p', join(client, 'build')], {
  stdio: 'inherit',
})
for (const name of readdirSync(emitted)) {
  const text = readFileSync(join(emitted, name), 'utf8')
  const published = text
    .replace(/'(?:\.\.\/)+src\/contract\/[\w-]+\.(?:ts|js)'/g, "'./contract.js'")
    .replace(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'")
  writeFileSync(join(dist, name), published)
}
writeFileSync(join(dist, 'contract.d.ts'), printTypes())
rmSync(join(dist, '.emit'), { recursive: true })

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
}
writeFileSync(join(dist, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
cpSync(join(client, 'README.md'), join(dist, 'README.md'))
cpSync(join(repository, 'LICENSE'), join(dist, 'LICENSE'))
