import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import { main } from '../cli/portolan.ts'
import { findProgram } from '../helpers/brokers.ts'
import { freePort } from '../helpers/free-port.ts'
import { startTestServer, systemBinaries } from '../helpers/postgres.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { blocksOf } from './document-blocks.ts'
import { expressions, read, root } from './expressions.ts'

const blocks = blocksOf(read('docs/production.md'))

/** A program of this name that the walk finds first. */
const makeProgram = async (folder: string, name: string, text: string): Promise<void> => {
  await writeFile(join(folder, name), `#!/bin/sh\n${text}\n`)
  await chmod(join(folder, name), 0o755)
}

test('the walk leads from empty servers to a running installation', {
  timeout: 300_000,
}, async (context) => {
  for (const [name, option] of [
    ['pgbouncer', '--version'],
    ['redis-server', '--version'],
    ['haproxy', '-v'],
    ['prometheus', '--version'],
    ['promtool', '--version'],
    ['psql', '--version'],
    ['curl', '--version'],
  ] as const)
    if (!(await findProgram(name, option))) context.skip(`there is no ${name} here`)
  const binaries = await systemBinaries()
  if (!binaries) return context.skip('there is no PostgreSQL here')
  const postgres = await startTestServer(binaries)
  onTestFinished(() => postgres.stop())
  const node = await startAnvil({ args: ['--block-time', '1'] })
  onTestFinished(() => node.kill())
  const { host, port, user } = postgres.connection

  const folder = await mkdtemp(join(tmpdir(), 'portolan-walk-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  await chmod(folder, 0o755)
  await makeProgram(folder, 'portolan', `exec '${process.execPath}' '${main}' "$@"`)
  await waitFor('the server has its folder', () => existsSync(host))
  const { uid, gid } = await stat(host)
  // It refuses to run as root.
  if (process.getuid?.() === 0)
    await makeProgram(
      folder,
      'pgbouncer',
      `exec setpriv --reuid=${uid} --regid=${gid} --clear-groups /usr/sbin/pgbouncer "$@"`,
    )
  const file = join(folder, 'walk.sh')
  const begin = [
    'set -euo pipefail',
    `trap 'echo "failed: $BASH_COMMAND" >&2' ERR`,
    `until psql -d postgres -c 'select 1' > /dev/null 2>&1; do sleep 0.1; done`,
  ]
  const lines = blocks
    .filter(({ notRun }) => notRun === undefined)
    .map(({ text, line }) => `echo "docs/production.md line ${line}" >&2\n${text}`)
  await writeFile(file, [...begin, ...lines].join('\n'))
  const names = ['PORT_1', 'ADMIN_1', 'PORT_2', 'ADMIN_2', 'PGBOUNCER_PORT', 'PUBLIC_PORT']
  const ports: Record<string, string> = {}
  for (const name of [...names, 'REDIS_PORT', 'PROMETHEUS_PORT'])
    ports[name] = `${await freePort()}`
  const begun = Date.now() / 1000
  const out = openSync(join(folder, 'output'), 'a')
  onTestFinished(() => closeSync(out))
  const walk = spawn('bash', [file], {
    cwd: folder,
    // A group of its own, so that what is left of it can be ended.
    detached: true,
    // Not a pipe, which programs in the background would keep open.
    stdio: ['ignore', out, out],
    env: {
      ...{ HOME: process.env.HOME, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE },
      PATH: `${folder}:${binaries}:${process.env.PATH}:/usr/sbin`,
      ...{ PGHOST: host, PGPORT: `${port}`, PGUSER: user },
      ...{ POSTGRES_HOST: host, POSTGRES_PORT: `${port}` },
      ...{ NODE_URL: node.url, CHECKOUT: root },
      ...ports,
    },
  })
  onTestFinished(() => {
    try {
      process.kill(-walk.pid!, 'SIGKILL')
    } catch {}
  })
  const [code] = await once(walk, 'exit')
  const output = await readFile(join(folder, 'output'), 'utf8')
  if (code !== 0) throw new Error(`the walk ended with ${code}:\n${output.slice(-3_000)}`)
  expect(output).toContain('acme')
  // The second process had a SIGHUP.
  expect(await readFile(join(folder, 'logs/portolan-2'), 'utf8')).toContain('reload')
  const silent = await evaluate(`http://127.0.0.1:${ports.PROMETHEUS_PORT}`, begun)
  // Rates over minutes, and what this walk does not do: webhooks, transactions, reorganizations.
  expect(silent.length).toBeLessThan(expressions.length / 2)
})

/** Evaluates every expression of alerts and dashboards on what Prometheus has scraped; returns those without a series. */
const evaluate = async (prometheus: string, begun: number): Promise<string[]> => {
  const silent: string[] = []
  for (const { place, text } of expressions) {
    const query = text.replaceAll('$chain', '.*')
    const time = { start: `${begun}`, end: `${Date.now() / 1000}`, step: '1' }
    const answer = await fetch(`${prometheus}/api/v1/query_range`, {
      method: 'POST',
      body: new URLSearchParams({ query, ...time }),
      signal: AbortSignal.timeout(10_000),
    })
    const { status, data } = (await answer.json()) as { status: string; data: { result: [] } }
    expect([place, status]).toEqual([place, 'success'])
    if (data.result.length === 0) silent.push(place)
  }
  return silent
}
