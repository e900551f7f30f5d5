// Run by `npm ci`, on any Node, so it is plain JavaScript. It never fails the installation: each step says what to do when
// it could not be done, and the first use tries again where it can.
//
// For development it fetches what the local chains and the tests need and builds the console. For production
// (`--omit=dev`) it removes what no program loads, and on an older Node it fetches the one that runs the service.

import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const isWindows = process.platform === 'win32'
// Where `bin/portolan.js` looks for it.
const folder = join(root, 'node_modules/node')
const ownNode = join(folder, 'bin', isWindows ? 'node.exe' : 'node')
const { NODE_ENV, npm_config_omit = '' } = process.env

if (NODE_ENV === 'production' || npm_config_omit.includes('dev')) {
  removeUnused()
  bringNode()
} else prepareDevelopment()

function prepareDevelopment() {
  const node = existsSync(ownNode) ? ownNode : process.execPath
  for (const program of [
    'devnet/anvil/fetch.ts',
    'scripts/fetch-test-data.ts',
    'scripts/build-console.ts',
  ])
    spawnSync(node, [program], { cwd: root, stdio: 'inherit' })
}

/**
 * Removes source maps and types, a quarter of the size, and two optional peers of libraries: npm installs a compiler and a
 * library of schemas for production too, because development has them.
 */
function removeUnused() {
  const modules = join(root, 'node_modules')
  for (const name of ['typescript', '@typescript', 'zod', '.bin/tsc'])
    rmSync(join(modules, name), { recursive: true, force: true })
  for (const name of readdirSync(modules, { recursive: true }))
    if (/\.(?:map|d\.[cm]?ts)$/.test(name)) rmSync(join(modules, name), { recursive: true })
}

function bringNode() {
  const wanted = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).devDependencies.node
  if (Number(process.versions.node.split('.')[0]) >= Number(wanted.split('.')[0])) return
  console.log(`This is Node ${process.versions.node}: fetching Node ${wanted} for the service …`)
  const problem = fetchNode(wanted)
  if (problem)
    console.log(
      `Not fetched: ${problem} Install Node ${wanted} or newer and run the service with it.`,
    )
}

/** Takes the program out of npm's package. The rest of it, npm and headers, is a third of its size. */
function fetchNode(version) {
  const isAppleArm = process.platform === 'darwin' && process.arch === 'arm64'
  const system = isWindows ? 'win' : process.platform
  const name = `node${isAppleArm ? '-bin' : ''}-${system}-${process.arch}`
  const into = `${folder}.new`
  try {
    mkdirSync(into, { recursive: true })
    const packed = run('npm', [
      'pack',
      `${name}@${version}`,
      '--silent',
      '--pack-destination',
      into,
    ])
    const archive = join(into, packed.trim().split('\n').at(-1))
    run('tar', ['-xzf', archive, '-C', into, '--strip-components=1', 'package/bin'])
    rmSync(archive)
    writeFileSync(join(into, 'package.json'), `${JSON.stringify({ name: 'node', version })}\n`)
    rmSync(folder, { recursive: true, force: true })
    renameSync(into, folder)
    return undefined
  } catch (error) {
    rmSync(into, { recursive: true, force: true })
    return error.message
  }
}

function run(program, args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    // The name of npm on Windows is a script.
    shell: isWindows,
    timeout: 600_000,
  })
  if (error) throw error
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr.trim()}`)
  return stdout
}
