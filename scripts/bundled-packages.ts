import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Manifest } from './published-manifest.ts'

/** Packages that are inside of the archive, and what they need besides. */
export type Bundled = { names: string[]; dependencies: Record<string, string> }

// Nothing loads these. Licenses stay.
const unused = /\.(?:ts|mts|cts|map|md)$|\/node_modules\b/

/**
 * Puts the packages into the archive for which `overrides` replaces dependencies: overrides apply in a checkout only, and
 * `@mysten/sui` alone would bring a TypeScript compiler along. The copies have no dependencies of their own. What is left
 * of them becomes dependencies of the package, in the versions of the checkout.
 */
export function bundlePackages(
  { overrides = {} }: Manifest,
  { root, target }: { root: string; target: string },
): Bundled {
  const bundled: Bundled = { names: [], dependencies: {} }
  for (const [name, replaced] of Object.entries(overrides)) {
    if (typeof replaced === 'string') continue
    const from = join(root, 'node_modules', name)
    const to = join(target, 'node_modules', name)
    mkdirSync(dirname(to), { recursive: true })
    cpSync(from, to, {
      recursive: true,
      filter: (path) => !unused.test(path.slice(from.length).replaceAll('\\', '/')),
    })
    const manifest = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'))
    const { dependencies = {}, devDependencies: _tools, scripts: _scripts, ...rest } = manifest
    writeFileSync(join(to, 'package.json'), `${JSON.stringify(rest, null, 2)}\n`)
    bundled.names.push(name)
    for (const needed of Object.keys(dependencies)) {
      const { version, peerDependencies = {} } = manifestOf(needed, from, root)
      // One that needs a replaced package, which npm would install for it, is of the same unused part.
      const isUnused = Object.keys(peerDependencies).some((peer) => peer in replaced)
      if (!(needed in replaced) && !isUnused) bundled.dependencies[needed] = version
    }
  }
  return bundled
}

type Needed = { version: string; peerDependencies?: Record<string, string> }

/** The manifest of what a package of the checkout loads. */
function manifestOf(name: string, from: string, root: string): Needed {
  for (const folder of [from, root])
    try {
      return JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8'))
    } catch {}
  throw new Error(`${name} is not installed`)
}
