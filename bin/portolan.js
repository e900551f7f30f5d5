#!/usr/bin/env node
// Plain JavaScript for any Node: it hands over to the Node that the package brings along, because
// the service is TypeScript that only a recent Node runs as it is.
import { spawn } from 'node:child_process'
import module, { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const major = Number(process.versions.node.split('.')[0])

// Before the first TypeScript file: what is in the cache needs no stripping, which halves the time of `--help`.
const cache = process.env.NODE_COMPILE_CACHE ?? join(tmpdir(), 'node-compile-cache')

if (major >= 26) {
  module.enableCompileCache(cache)
  await import(main)
} else {
  const child = spawn(ownNode(), [main, ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: { ...process.env, NODE_COMPILE_CACHE: cache },
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? (signal ? 1 : 0)
  })
}

function ownNode() {
  try {
    const folder = dirname(createRequire(import.meta.url).resolve('node/package.json'))
    return join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  } catch {
    console.error(
      `Portolan runs on Node 26 or newer, and this is ${process.versions.node}. Run \`npm ci\` in its folder first: that brings one along.`,
    )
    process.exit(1)
  }
}
