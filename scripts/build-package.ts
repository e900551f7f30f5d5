// Builds the npm package `portolan` into a folder (`dist/portolan` unless another one is named): the service as
// JavaScript in the layout of the repository, the console, and a manifest of its own. Node strips no types below
// `node_modules`, so the sources cannot be published as they are. Local chains are not part of it.

import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { bundlePackages } from './bundled-packages.ts'
import { publishedManifest } from './published-manifest.ts'

const root = join(import.meta.dirname, '..')
const target = resolve(process.argv[2] ?? join(root, 'dist/portolan'))
const bin = (name: string) => join(root, 'node_modules/.bin', name)

rmSync(target, { recursive: true, force: true })
mkdirSync(target, { recursive: true })
execFileSync(
  bin('tsc'),
  ['-p', join(import.meta.dirname, 'package.tsconfig.json'), '--outDir', target],
  {
    stdio: 'inherit',
  },
)
// In the program for their types only.
rmSync(join(target, 'devnet'), { recursive: true, force: true })

const copy = (path: string) => {
  mkdirSync(dirname(join(target, path)), { recursive: true })
  cpSync(join(root, path), join(target, path), { recursive: true })
}
// What the sources read at run time: SQL, and the files of the API reference.
for (const path of globSync('src/**/*.{sql,css,js,json}', { cwd: root })) copy(path)
for (const path of ['bin/portolan.js', 'bin/compile-cache.js']) copy(path)
for (const path of ['LICENSE', 'README.md', 'CHANGELOG.md', 'portolan.example.yaml']) copy(path)

if (!existsSync(join(root, 'console/dist/index.html')))
  execFileSync(process.execPath, [join(import.meta.dirname, 'build-console.ts')], {
    stdio: 'inherit',
  })
copy('console/dist')

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const bundled = bundlePackages(manifest, { root, target })
const published = publishedManifest(manifest, process.env.GITHUB_REPOSITORY, bundled)
writeFileSync(join(target, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
console.log(`Built ${published.name} ${published.version} in ${target}`)
