// Builds the npm package `@portolan/client` into a folder (`client/dist` unless another one is named): JavaScript for
// Node 20 and newer, and types without a dependency. TypeScript compiles the sources, with the types of the contract
// printed in place of the catalogue.

import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { repositoryOf } from '../../scripts/published-manifest.ts'
import { printTypes } from './print-types.ts'
import { withJsSpecifiers } from './specifiers.ts'

const client = join(import.meta.dirname, '..')
const repository = join(client, '..')
const dist = resolve(process.argv[2] ?? join(client, 'dist'))
const staging = join(dist, '.src')

rmSync(dist, { recursive: true, force: true })
mkdirSync(staging, { recursive: true })
const isTest = (name: string) => /\.test(?:-d)?\.ts$/.test(name)
for (const path of globSync('src/*.ts', { cwd: client, exclude: isTest }))
  cpSync(join(client, path), join(staging, basename(path)))
writeFileSync(join(staging, 'contract.ts'), printTypes())
writeFileSync(join(staging, 'package.json'), '{ "type": "module" }\n')
const config = { extends: join(import.meta.dirname, 'tsconfig.json'), files: ['index.ts'] }
writeFileSync(join(staging, 'tsconfig.json'), JSON.stringify(config))

const compile = (...options: string[]) => {
  const common = ['-p', staging, '--rootDir', staging, '--outDir', dist]
  execFileSync(join(repository, 'node_modules/.bin/tsc'), [...common, ...options], {
    stdio: 'inherit',
  })
}
// Editors show the comments of the types. Programs load the code without them.
compile('--declaration', '--emitDeclarationOnly')
compile('--removeComments')
rmSync(staging, { recursive: true })
// TypeScript leaves the specifiers of declarations as they are, and not all editors resolve `.ts` there.
for (const path of globSync('*.d.ts', { cwd: dist })) {
  const file = join(dist, path)
  writeFileSync(file, withJsSpecifiers(path, readFileSync(file, 'utf8')))
}

const { scripts: _, ...manifest } = JSON.parse(readFileSync(join(client, 'package.json'), 'utf8'))
const { GITHUB_REPOSITORY } = process.env
const published = {
  ...manifest,
  ...(GITHUB_REPOSITORY && repositoryOf(GITHUB_REPOSITORY)),
  engines: { node: '>=20' },
  sideEffects: false,
  exports: {
    '.': { types: './index.d.ts', default: './index.js' },
    './package.json': './package.json',
  },
  publishConfig: { access: 'public' },
}
writeFileSync(join(dist, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
cpSync(join(client, 'README.md'), join(dist, 'README.md'))
cpSync(join(client, 'examples'), join(dist, 'examples'), { recursive: true })
cpSync(join(repository, 'LICENSE'), join(dist, 'LICENSE'))
