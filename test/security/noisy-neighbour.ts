import { type ChildProcess, execFile, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Pool } from 'undici'
import { readNumbers } from '../faults/program.ts'
import { authHeaders, type Pair } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { abuses } from './abuses.ts'

/** The latency of another tenant's calls, alone and beside one kind of abuse. */
export type Figure = {
  abuse: string
  calls: number
  alone_ms: number
  beside_ms: number
  ratio: number
  failed: number
}

const main = join(import.meta.dirname, '../../src/main.ts')
const run = promisify(execFile)

/** Signed calls and gateway calls of a tenant that stays far below its limits, one every 20 ms. */
const measure = async (pool: Pool, pair: Pair, seconds: number) => {
  const path = '/v1/c/ListWallets'
  const json = { 'content-type': 'application/json' }
  const requests = [
    () => ({ path, body: '{}', headers: { ...json, ...authHeaders(pair, { path, body: '{}' }) } }),
    () => ({
      path: `/c/mainnet/v1/${pair.api_key}`,
      body: '{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x0000000000000000000000000000000000000001","latest"]}',
      headers: json,
    }),
  ]
  const times: number[] = []
  let failed = 0
  const end = performance.now() + seconds * 1_000
  const open: Promise<void>[] = []
  for (let turn = 0; performance.now() < end; turn++) {
    const request = requests[turn % requests.length]!()
    const begin = performance.now()
    open.push(
      pool
        .request({ ...request, method: 'POST' })
        .then(async ({ statusCode, body }) => {
          await body.dump()
          if (statusCode !== 200) failed++
          times.push(performance.now() - begin)
        })
        .catch(() => void failed++),
    )
    await delay(20)
  }
  await Promise.all(open)
  return { times, failed }
}

const p99 = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? Number.NaN

/** Measures one tenant in turn alone and beside each abuse of another, in rounds that alternate. */
export const runNoisyNeighbours = async (options: {
  seconds: number
  rounds: number
  kinds?: readonly string[]
}): Promise<Figure[]> => {
  const { seconds, rounds, kinds = Object.keys(abuses) } = options
  const folder = await mkdtemp(join(tmpdir(), 'portolan-noisy-'))
  // As root the database runs as another user, who must come through.
  await chmod(folder, 0o711)
  const dataDir = join(folder, 'data')
  const env = { ...process.env, PORTOLAN_DATA_DIR: dataDir, PORTOLAN_PORT: '0' }
  const service = spawn(process.execPath, [main, 'start', '--chains', 'c'], {
    ...{ cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'] as const },
  })
  const figures: Figure[] = []
  try {
    const file = join(dataDir, 'connection.json')
    const connection = () => readFile(file, 'utf8').then(JSON.parse, () => undefined)
    await waitFor('the service is ready', async () => (await connection()) !== undefined, {
      timeoutMs: 120_000,
    })
    const { base_url } = (await connection()) as { base_url: string }
    const create = async (domain: string): Promise<Pair> => {
      const command = (...args: string[]) =>
        run(process.execPath, [main, ...args], { cwd: folder, env })
      await command('organizations', 'create', domain)
      const { stdout } = await command('keys', 'create', domain, '--json')
      return JSON.parse(stdout) as Pair
    }
    const pair = await create('quiet')
    const pool = new Pool(base_url, { connections: 16, pipelining: 1 })
    await measure(pool, pair, 5)
    for (const [index, abuse] of kinds.entries()) {
      const noisy = await create(`noisy-${index}`)
      const alone: number[] = []
      const beside: number[] = []
      let failed = 0
      for (let round = 0; round < rounds; round++) {
        alone.push(...(await measure(pool, pair, seconds)).times)
        const child = fork(import.meta.filename, ['abuse', abuse, base_url, JSON.stringify(noisy)])
        await delay(1_000)
        const found = await measure(pool, pair, seconds)
        await stop(child)
        beside.push(...found.times)
        failed += found.failed
        await delay(500)
      }
      figures.push({
        ...{ abuse, calls: beside.length, alone_ms: p99(alone), beside_ms: p99(beside) },
        ...{ ratio: p99(beside) / p99(alone), failed },
      })
      console.log(JSON.stringify(figures.at(-1)))
    }
    await pool.destroy()
  } finally {
    await stop(service, 'SIGTERM')
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  return figures
}

const stop = async (child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
  if (child.exitCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

const [role, kind = '', base_url = '', pair = ''] = process.argv.slice(2)
if (import.meta.main && role === 'abuse') {
  const pool = new Pool(base_url, { connections: 64, pipelining: 1 })
  const { signal } = new AbortController()
  await abuses[kind]!({ pool, base_url, pair: JSON.parse(pair) as Pair, signal })
} else if (import.meta.main) {
  const figures = await runNoisyNeighbours(readNumbers({ seconds: 10, rounds: 3 }))
  console.table(figures)
  const bad = figures.filter(({ ratio, failed }) => !(ratio <= 1.5) || failed > 0)
  if (bad.length > 0)
    throw new Error(`too slow beside: ${bad.map(({ abuse }) => abuse).join(', ')}`)
}
