import { type ChildProcess, execFile, fork, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Pool } from 'undici'
import { readNumbers } from '../faults/program.ts'
import { authHeaders, type Pair } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'
import type { Report } from './abuser.ts'
import { type Abuse, abuses, useFaucet, webhookQuota } from './abuses.ts'

/** The latency of another tenant's calls and notifications, alone and beside one kind of abuse. */
type Figure = {
  abuse: string
  calls: number
  alone_ms: number
  beside_ms: number
  ratio: number
  /** The same for operations alone, which need no node. */
  operation_ratio: number
  transfer_alone_ms: number
  transfer_beside_ms: number
  failed: number
  unintended: string
}

const main = join(import.meta.dirname, '../../src/main.ts')
const run = promisify(execFile)
const json = { 'content-type': 'application/json' }

const post = async (pool: Pool, request: { path: string; body: string; headers?: object }) => {
  const { path, body, headers = {} } = request
  const answer = await pool.request({
    path,
    method: 'POST',
    body,
    headers: { ...json, ...headers },
  })
  return { status: answer.statusCode, text: await answer.body.text() }
}

const signed = (pair: Pair, operation: string, request: object) => {
  const path = `/v1/${operation}`
  const body = JSON.stringify(request)
  return { path, body, headers: authHeaders(pair, { path, body }) }
}

/** Every process below one, with its command line. */
const descendants = async (root: number): Promise<{ pid: number; command: string }[]> => {
  const parents = new Map<number, number>()
  for (const name of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
    const stat = await readFile(`/proc/${name}/stat`, 'latin1').catch(() => '')
    // The name of the command is in parentheses and may contain spaces.
    parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
  }
  const isBelow = (pid: number): boolean =>
    pid === root || (pid > 1 && isBelow(parents.get(pid) ?? 0))
  const below = [...parents.keys()].filter(isBelow)
  return Promise.all(
    below.map(async (pid) => ({
      pid,
      command: await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => ''),
    })),
  )
}

/**
 * Gives the service and its database one core, and the node, the abuser and this program the other one. In production
 * each has a machine of its own. Without this the figures show how the scheduler shares two cores between them: an
 * emulated node takes a second of both for one call of 4 MiB.
 */
const separateCores = async (service: number): Promise<void> => {
  const pin = (core: number, pid: number) =>
    run('taskset', ['--all-tasks', '--pid', '--cpu-list', `${core}`, `${pid}`]).catch(() => {})
  await pin(1, process.pid)
  for (const { pid, command } of await descendants(service))
    await pin(/anvil[^/]*\0/.test(command) ? 1 : 0, pid)
}

/** A tenant that stays far below its limits, with a wallet and a webhook. */
const createQuiet = async (base_url: string, pair: Pair) => {
  // A pool for each kind of call: operations must not wait in this process for calls that wait for the node.
  const pool = new Pool(base_url, { connections: 64, pipelining: 1 })
  const gateway = new Pool(base_url, { connections: 64, pipelining: 1 })
  const arrivals = new Map<string, number>()
  const sink = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString()
    for (const [hash] of body.matchAll(/0x[0-9a-f]{64}/g))
      if (!arrivals.has(hash)) arrivals.set(hash, performance.now())
    response.writeHead(204).end()
  }).listen(0, '127.0.0.1')
  await once(sink, 'listening')
  const address = `0x${randomBytes(20).toString('hex')}`
  const create = async (operation: string, request: object) => {
    const { status, text } = await post(pool, signed(pair, operation, request))
    if (status !== 200) throw new Error(`${operation}: ${text}`)
    return JSON.parse(text)
  }
  const { wallet_id } = await create('c/RegisterWallet', { name: 'quiet', address })
  await create('c/RegisterWebhook', {
    ...{ wallet_id, confirmation: 0 },
    webhook_endpoint: `http://127.0.0.1:${(sink.address() as AddressInfo).port}/`,
  })

  /** How long a transfer takes from the faucet to the webhook; undefined if it does not arrive. */
  const transfer = async (): Promise<number | undefined> => {
    const begin = performance.now()
    const transaction_hash = await useFaucet(pool, address)
    const end = performance.now() + 60_000
    while (!arrivals.has(transaction_hash) && performance.now() < end) await delay(5)
    const arrival = arrivals.get(transaction_hash)
    return arrival && arrival - begin
  }

  const calls = [
    () => signed(pair, 'c/ListWallets', {}),
    () => ({
      path: `/c/mainnet/v1/${pair.api_key}`,
      body: '{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x0000000000000000000000000000000000000001","latest"]}',
    }),
  ]

  /** A call every 20 ms, signed calls and gateway calls in turn, and a transfer every second. */
  const measure = async (seconds: number) => {
    const times: number[] = []
    const operations: number[] = []
    const transfers: number[] = []
    let failed = 0
    const fail = () => {
      failed++
    }
    const end = performance.now() + seconds * 1_000
    const open: Promise<void>[] = []
    for (let turn = 0; performance.now() < end; turn++) {
      const begin = performance.now()
      const isOperation = turn % calls.length === 0
      const request = calls[turn % calls.length]!()
      const call = post(isOperation ? pool : gateway, request).then(({ status, text }) => {
        if (status !== 200 || text.includes('"error"')) fail()
        times.push(performance.now() - begin)
        if (isOperation) operations.push(performance.now() - begin)
      })
      open.push(call.catch(fail))
      if (turn % 50 === 0)
        open.push(transfer().then((ms) => (ms ? void transfers.push(ms) : fail()), fail))
      await delay(20)
    }
    await Promise.all(open)
    return { times, operations, transfers, failed }
  }
  const stop = async () => {
    sink.close().closeAllConnections()
    await Promise.all([pool.destroy(), gateway.destroy()])
  }
  return { measure, stop }
}

const p99 = (times: readonly number[]): number =>
  Number(
    (times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? Number.NaN).toFixed(1),
  )

const ratioOf = (beside: readonly number[], alone: readonly number[]): number =>
  Number((p99(beside) / p99(alone)).toFixed(2))

type Measured = { times: number[]; operations: number[]; transfers: number[]; failed: number }

const empty = (): Measured => ({ times: [], operations: [], transfers: [], failed: 0 })

const add = (sum: Measured, { times, operations, transfers, failed }: Measured): void => {
  sum.times.push(...times)
  sum.operations.push(...operations)
  sum.transfers.push(...transfers)
  sum.failed += failed
}

/** What shows that the calls of an abuse were not accepted or refused as intended; empty if they were. */
const unintended = ({ must, may = [] }: Abuse, outcomes: object): string[] => [
  ...must.filter((outcome) => !(outcome in outcomes)).map((outcome) => `no ${outcome}`),
  ...Object.keys(outcomes).filter((outcome) => ![...must, ...may].includes(outcome)),
]

const reportOf = async (child: ChildProcess): Promise<Report> => {
  const ended = new AbortController()
  const exit = once(child, 'exit', { signal: ended.signal }).then(([code]) => {
    throw new Error(`the process of the abuser ended with ${code}`)
  })
  exit.catch(() => {})
  try {
    const [report] = await Promise.race([once(child, 'message', { signal: ended.signal }), exit])
    return report as Report
  } finally {
    ended.abort()
  }
}

/** Measures one tenant in turn alone and beside each abuse of another, in rounds that alternate. */
const runNoisyNeighbours = async (options: {
  seconds: number
  rounds: number
  kinds: readonly string[]
}): Promise<Figure[]> => {
  const { seconds, rounds, kinds } = options
  const folder = await mkdtemp(join(tmpdir(), 'portolan-noisy-'))
  // As root the database runs as another user, who must come through.
  await chmod(folder, 0o711)
  const dataDir = join(folder, 'data')
  const env = {
    ...process.env,
    PORTOLAN_DATA_DIR: dataDir,
    PORTOLAN_PORT: '0',
    PORTOLAN_QUOTAS__WEBHOOKS: `${webhookQuota}`,
  }
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
    const command = (...args: string[]) =>
      run(process.execPath, [main, ...args], { cwd: folder, env })
    const create = async (domain: string, perSecond?: number): Promise<Pair> => {
      await command('organizations', 'create', domain)
      if (perSecond) await command('limits', 'set', domain, 'c', '--per-second', `${perSecond}`)
      const { stdout } = await command('keys', 'create', domain, '--json')
      return JSON.parse(stdout) as Pair
    }
    await separateCores(service.pid!)
    const quiet = await createQuiet(base_url, await create('quiet'))
    await quiet.measure(5)
    for (const [index, name] of kinds.entries()) {
      const abuse = abuses[name]!
      const pair = await create(`noisy-${index}`, abuse.perSecond)
      const child = fork(join(import.meta.dirname, 'abuser.ts'), [
        ...[name, base_url, JSON.stringify(pair)],
      ])
      await reportOf(child)
      // Its own work is done elsewhere in production; what it costs the service remains.
      setPriority(child.pid!, 19)
      const alone = empty()
      const beside = empty()
      let outcomes: Report = {}
      for (let round = 0; round < rounds; round++) {
        add(alone, await quiet.measure(seconds))
        child.send('begin')
        await delay(1_000)
        add(beside, await quiet.measure(seconds))
        child.send('stop')
        outcomes = await reportOf(child)
        await delay(500)
      }
      await stop(child, 'SIGKILL')
      figures.push({
        ...{ abuse: name, calls: beside.times.length },
        ...{ alone_ms: p99(alone.times), beside_ms: p99(beside.times) },
        ratio: ratioOf(beside.times, alone.times),
        operation_ratio: ratioOf(beside.operations, alone.operations),
        transfer_alone_ms: p99(alone.transfers),
        transfer_beside_ms: p99(beside.transfers),
        ...{ failed: beside.failed, unintended: unintended(abuse, outcomes as object).join() },
      })
      console.log(JSON.stringify({ ...figures.at(-1), outcomes }))
    }
    await quiet.stop()
  } finally {
    await stop(service, 'SIGTERM')
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  return figures
}

const stop = async (child: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

const { from, count, ...numbers } = readNumbers({ seconds: 10, rounds: 3, from: 0, count: 100 })
const kinds = Object.keys(abuses).slice(from, from + count)
const figures = await runNoisyNeighbours({ ...numbers, kinds })
console.table(figures)
const bad = figures.filter(
  ({ ratio, transfer_alone_ms, transfer_beside_ms, failed, unintended }) =>
    unintended !== '' ||
    !(ratio <= 1.5) ||
    !(transfer_beside_ms <= transfer_alone_ms * 1.5) ||
    failed > 0,
)
if (bad.length > 0)
  throw new Error(`too slow, or not as intended: ${bad.map(({ abuse }) => abuse).join(', ')}`)
