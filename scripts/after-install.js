// Run by `npm ci`, on any Node, so it is plain JavaScript. It never fails the installation: each step says what to do when
// it could not be done, and the first use tries again where it can.
//
// For development it fetches what the local chains and the tests need and builds the console. For production
// (`--omit=dev`) it fetches the Node that runs the service where that of the machine is older, and removes what the service
// cannot load.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const isWindows = process.platform === 'win32'
// Where `bin/portolan.js` looks for it.
const folder = join(root, 'node_modules/node')
const ownNode = join(folder, 'bin', isWindows ? 'node.exe' : 'node')
const { NODE_ENV, npm_config_omit = '' } = process.env

if (NODE_ENV === 'production' || npm_config_omit.includes('dev')) {
  bringNode()
  removeUnused()
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
 * Removes two optional peers of libraries, because npm installs a compiler and a library of schemas for production too when
 * development has them, and then what the service cannot load, half of the rest. This needs the Node of the service.
 */
function removeUnused() {
  const modules = join(root, 'node_modules')
  for (const name of ['typescript', '@typescript', 'zod', '.bin/tsc'])
    rmSync(join(modules, name), { recursive: true, force: true })
  const node = existsSync(ownNode) ? ownNode : isRecent() ? process.execPath : undefined
  if (node)
    spawnSync(node, ['--experimental-import-meta-resolve', 'scripts/prune-modules.js'], {
      cwd: root,
      stdio: 'inherit',
    })
}

function majorOf(version) {
  return Number(version.split('.')[0])
}

function wantedNode() {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).devDependencies.node
}

function isRecent() {
  return majorOf(process.versions.node) >= majorOf(wantedNode())
}

function bringNode() {
  const wanted = wantedNode()
  if (isRecent()) return
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
    if (process.platform === 'linux') dropSymbols(join(into, 'bin/node'))
    writeFileSync(join(into, 'package.json'), `${JSON.stringify({ name: 'node', version })}\n`)
    rmSync(folder, { recursive: true, force: true })
    renameSync(into, folder)
    return undefined
  } catch (error) {
    rmSync(into, { recursive: true, force: true })
    return error.message
  }
}

/**
 * Cuts the names of functions for debuggers off a program, a fifth of its size, as `strip` does it, which few servers have.
 * What is loaded is described by segments; sections and what comes after the last segment serve linkers and debuggers only.
 */
function dropSymbols(path) {
  const bytes = readFileSync(path)
  // Only 64 bits in little endian: x64 and arm64.
  if (bytes.readUInt32BE(0) !== 0x7f454c46 || bytes[4] !== 2 || bytes[5] !== 1) return
  const [first, size, count] = [
    bytes.readBigUInt64LE(32),
    bytes.readUInt16LE(54),
    bytes.readUInt16LE(56),
  ]
  let end = 0
  for (let at = Number(first); at < Number(first) + size * count; at += size)
    end = Math.max(end, Number(bytes.readBigUInt64LE(at + 8) + bytes.readBigUInt64LE(at + 32)))
  // No sections: their place, number and names.
  bytes.writeBigUInt64LE(0n, 40)
  bytes.writeUInt16LE(0, 60)
  bytes.writeUInt16LE(0, 62)
  writeFileSync(path, bytes.subarray(0, end))
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
