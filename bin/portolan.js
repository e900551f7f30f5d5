#!/usr/bin/env node
// Plain JavaScript for any Node. An older one hands over to the Node that is installed beside the package, if there is
// one: the service needs a recent Node.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ownCompileCache } from './compile-cache.js'

const own = fileURLToPath(import.meta.url)
// A checkout runs the TypeScript sources. Node strips no types below `node_modules`, so the published package is built.
const built = new URL('../src/main.js', import.meta.url)
const main = fileURLToPath(existsSync(built) ? built : new URL('../src/main.ts', import.meta.url))
const major = Number(process.versions.node.split('.')[0])

// Before the first file of the sources: what is in the cache needs no stripping, which halves the time of `--help`.
const cache = process.env.NODE_COMPILE_CACHE || ownCompileCache()
// Says that the process above is this program on an older Node.
const launched = 'PORTOLAN_LAUNCHED'
// The service has one thread of V8 beside the main one, not four, and a small space for new objects: see
// `app/cluster/member.ts`, which starts all processes but this one and compares flags in the same way. V8 reads both before
// any of our code runs. Those that the operator has set win.
const ownFlags = ['--v8-pool-size=1', '--max-semi-space-size=8']
const given = process.execArgv
  // Node also takes the value as an argument of its own.
  .map((flag, at) => (flag.includes('=') ? flag : `${flag}=${process.execArgv[at + 1]}`))
  .filter((flag) => setsOneOf(ownFlags, flag))
const inherited = (process.env.NODE_OPTIONS ?? '').split(/[\s"]+/)
const flags =
  process.argv[2] === 'start'
    ? ownFlags.filter((flag) => ![...given, ...inherited].some((one) => setsOneOf([flag], one)))
    : []
const args = [...flags, own, ...process.argv.slice(2)]

if (major >= 26) {
  // Not with a channel to the process above, which would be lost.
  if (flags.length > 0 && !process.channel)
    replaceBy(process.execPath, [...process.execArgv, ...args], process.env)
  if (process.env[launched]) endWithLauncher()
  else endWithNpm()
  if (cache) module.enableCompileCache(cache)
  await import(main)
} else {
  const node = ownNode()
  const env = { ...process.env, ...(cache && { NODE_COMPILE_CACHE: cache }) }
  // One process instead of two: signals, kills and exit codes are its own. Node has it since 22.15.
  // Other flags of the older Node may be unknown to this one.
  replaceBy(node, [...given, ...args], env)
  endWithNpm()
  const child = spawn(node, [...given, ...args], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...env, [launched]: '1' },
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? (signal ? 1 : 0)
  })
}

/** Whether a flag sets what one of ours does: V8 takes `_` for `-`, and a least size is bounded by the greatest one. */
function setsOneOf(ours, flag) {
  const settingOf = (one) =>
    one.replace(/=.*/, '').replaceAll('_', '-').replace('--min-semi', '--max-semi')
  return ours.some((one) => settingOf(one) === settingOf(flag))
}

/** Runs a Node in place of this process, where the system and this Node can. */
function replaceBy(node, args, env) {
  if (process.execve && process.platform !== 'win32') process.execve(node, [node, ...args], env)
}

/**
 * Ends this process together with the older Node that started it. A service that went on after that was
 * killed would hold the data directory, and a supervisor could never start it again.
 */
function endWithLauncher() {
  delete process.env[launched]
  process.channel?.unref()
  process.once('disconnect', end)
}

/** The same for npm, which has no channel to what it starts: an orphan gets another parent. */
function endWithNpm() {
  if (process.env.npm_lifecycle_event === undefined || process.platform === 'win32') return
  const parent = process.ppid
  setInterval(() => process.ppid !== parent && end(), 500).unref()
}

/** At once: what a kill leaves is put right at the next start, which may be a moment away. */
function end() {
  process.kill(process.pid, 'SIGKILL')
}

function ownNode() {
  try {
    const folder = dirname(createRequire(import.meta.url).resolve('node/package.json'))
    return join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  } catch {
    const inCheckout = existsSync(new URL('../package-lock.json', import.meta.url))
    const help = inCheckout ? 'npm ci' : 'npx -p node@26 -p portolan portolan'
    console.error(
      `Portolan needs Node 26 or newer; this is ${process.versions.node}. Install it, or use the one that npm has: \`${help}\`.`,
    )
    process.exit(1)
  }
}
