// Writes the bill of materials of the service to `dist/portolan.cdx.json` (CycloneDX): every package of a production
// installation with its version, license and digest, by the lock file. With `-` it is written to the output.

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')
const readJson = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'))

/** npm's own `--omit dev` would omit what both development and production use, so it gets a lock file of production. */
function describeProduction(): string {
  const { devDependencies: _, workspaces: __, ...manifest } = readJson('package.json')
  const lock = readJson('package-lock.json')
  const packages = Object.entries<{ dev?: true; devOptional?: true; link?: true }>(lock.packages)
    .filter(([path, { dev, devOptional, link }]) => {
      const isInstalled = path.startsWith('node_modules/')
      return isInstalled && !dev && !devOptional && !link
    })
    // Of an optional peer that only development has.
    .filter(([path]) => !path.startsWith('node_modules/@typescript/'))
  const { name, version, license, dependencies, optionalDependencies } = manifest
  const own = { name, version, license, dependencies, optionalDependencies }
  const folder = mkdtempSync(join(tmpdir(), 'portolan-materials-'))
  try {
    const write = (file: string, value: object) =>
      writeFileSync(join(folder, file), JSON.stringify(value))
    write('package.json', manifest)
    write('package-lock.json', { ...lock, packages: { '': own, ...Object.fromEntries(packages) } })
    return execFileSync(
      'npm',
      ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'],
      { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 26 },
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const text = describeProduction()
if (process.argv[2] === '-') process.stdout.write(text)
else {
  mkdirSync(join(root, 'dist'), { recursive: true })
  const file = join(root, 'dist/portolan.cdx.json')
  writeFileSync(file, text)
  console.log(`${JSON.parse(text).components.length} components in ${file}`)
}
