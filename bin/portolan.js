#!/usr/bin/env node
// Plain JavaScript for any Node: it hands over to the Node that the package brings along, because
// the service is TypeScript that only a recent Node runs as it is.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const major = Number(process.versions.node.split('.')[0])

if (major >= 26) await import(main)
else {
  const child = spawn(ownNode(), [main, ...process.argv.slice(2)], { stdio: 'inherit' })
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
    console.error('Portolan needs Node 26 or newer, or `npm ci` in its folder, which brings one along.')
    process.exit(1)
  }
}
