// Installs the service as an operator would, and starts it: the checkout with `npm ci --omit=dev` on the Node of this
// machine, and the packed package with `npm install` in an empty project. It prints sizes and times.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { freePort } from '../helpers/free-port.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { packPackage, root } from './installation.ts'

// The Node of the machine rather than the project's.
const path = (process.env.PATH ?? '')
  .split(':')
  .filter((place) => !place.includes('node_modules'))
  .join(':')
const node = join(root, 'node_modules/node/bin/node')
const largestMegabytes = 200

const ownNode = (modules: string) => join(modules, 'node/bin/node')

// Every module of the service, and every package that it names: some are loaded on use.
const loadAll = `
  import { globSync, readFileSync } from 'node:fs'
  import { resolve } from 'node:path'
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  const files = globSync('src/**/*.ts')
    .filter((file) => !/test(-d)?\\.ts$|testing|src.main\\.ts|cluster.worker\\.ts/.test(file))
  const sources = files.map((file) => readFileSync(file, 'utf8')).join('\\n')
  const named = [...sources.matchAll(/(?:from|import\\()\\s*'([@a-z][^']*)'/g)].map(([, name]) => name)
  const packages = new Set(named.filter((name) => Object.keys(dependencies).some((one) => name === one || name.startsWith(one + '/'))))
  for (const name of packages) await import(name)
  for (const file of files) await import(resolve(file))
  console.log('loaded', packages.size, 'packages and', files.length, 'modules')
  process.exit()
`

const folder = mkdtempSync(join(tmpdir(), 'portolan-install-'))
execFileSync('chmod', ['711', folder])
const run = (program: string, args: string[], cwd: string, env: Record<string, string> = {}) =>
  execFileSync(program, args, {
    ...{ cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
    env: { ...process.env, PATH: path, ...env },
  })
const megabytes = (place: string) => Number.parseInt(run('du', ['-sm', place], folder), 10)

try {
  await installCheckout()
  await installPackage()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function installCheckout(): Promise<void> {
  const checkout = join(folder, 'checkout')
  mkdirSync(checkout)
  run('sh', ['-c', `git -C '${root}' archive HEAD | tar -x`], checkout)
  run('npm', ['ci', '--omit=dev'], checkout)
  const modules = join(checkout, 'node_modules')
  const total = megabytes(modules)
  const own = existsSync(join(modules, 'node')) ? megabytes(join(modules, 'node')) : 0
  console.log(`npm ci --omit=dev: ${total} MB, of which Node for this machine: ${own} MB`)
  if (total >= largestMegabytes) throw new Error(`${largestMegabytes} MB or more`)
  // What was removed is what nothing loads.
  console.log(
    run(own > 0 ? ownNode(modules) : node, ['--input-type=module', '-e', loadAll], checkout),
  )
  for (const name of ['@ton/sandbox', '@foundry-rs', 'viem', 'typescript', 'vite'])
    if (existsSync(join(modules, name))) throw new Error(`${name} is installed for production`)
  await startAndStop('npm', ['start', '--'], checkout, path)
}

async function installPackage(): Promise<void> {
  const { archive } = await packPackage(folder)
  const project = join(folder, 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{ "private": true }\n')
  const recent = `${dirname(node)}:${path}`
  run('npm', ['install', archive], project, { PATH: recent })
  const total = megabytes(join(project, 'node_modules'))
  console.log(`npm install portolan: ${total} MB`)
  if (total >= largestMegabytes) throw new Error(`${largestMegabytes} MB or more`)
  if (existsSync(join(project, 'node_modules/typescript')))
    throw new Error('a compiler is installed')
  run('npm', ['prune', '--omit=optional'], project, { PATH: recent })
  console.log(`without the embedded PostgreSQL: ${megabytes(join(project, 'node_modules'))} MB`)
  run('npm', ['install'], project, { PATH: recent })
  for (const argument of ['--version', '--help']) {
    const times = Array.from({ length: 5 }, () => {
      const begin = performance.now()
      run(node, ['node_modules/portolan/bin/portolan.js', argument], project)
      return performance.now() - begin
    })
    const median = times.toSorted((a, b) => a - b)[2]!
    console.log(`portolan ${argument}: ${median.toFixed(0)} ms`)
  }
  await startAndStop('npx', ['portolan', 'start'], project, recent)
}

async function startAndStop(
  program: string,
  args: string[],
  cwd: string,
  path: string,
): Promise<void> {
  const port = await freePort()
  const service = spawn(program, [...args, '--port', `${port}`], {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
    env: { ...process.env, PATH: path, PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true' },
  })
  const ended = once(service, 'exit')
  let log = ''
  service.stdout.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
  try {
    const base_url = `http://127.0.0.1:${port}`
    await waitFor('ready', async () => {
      if (service.exitCode !== null) throw new Error(`it ended with ${service.exitCode}:\n${log}`)
      return await fetch(`${base_url}/ready`).then(
        ({ ok }) => ok,
        () => false,
      )
    })
    if (!log.includes('Local chains are not installed'))
      throw new Error(`no word of chains: ${log}`)
    const status = (await (await fetch(`${base_url}/status`)).json()) as { version: string }
    if (!/^\d+\.\d+\.\d+/.test(status.version)) throw new Error('no version in /status')
    console.log(`${program} ${args.join(' ')}: ready, version ${status.version}`)
  } finally {
    process.kill(-service.pid!, 'SIGTERM')
    await ended
  }
}
