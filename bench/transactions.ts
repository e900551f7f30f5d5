import { fork } from 'node:child_process'
import { randomUUIDv7 } from 'node:crypto'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '../src/lib/clock.ts'
import { silentLog } from '../src/lib/log.ts'
import { openDatabase } from '../src/storage/pg/database.ts'
import { startTracker } from '../src/workers/tracker/tracker.ts'
import { embeddedBinaries } from '../test/helpers/postgres.ts'
import { createWalletBench } from '../test/helpers/wallets.ts'
import { startBenchDatabase } from './lib/bench-database.ts'
import { table, writeSection } from './lib/results.ts'
import type { LoadOptions, LoadResult } from './transactions-load.ts'

const { values } = parseArgs({
  options: {
    tenants: { type: 'string', default: '10' },
    rate: { type: 'string', default: '500' },
    seconds: { type: 'string', default: '15' },
    // The worst case is a queue on one address.
    addresses: { type: 'string', default: '1' },
    // As workers of the service. One of them creates a few hundred a second at most.
    processes: { type: 'string', default: `${Math.max(1, availableParallelism() - 1)}` },
  },
})
const tenants = Number(values.tenants)
const rate = Number(values.rate)
const seconds = Number(values.seconds)
const addressesEach = Number(values.addresses)
const processes = Math.min(tenants, Number(values.processes))
const blockMs = 200
const firstAccount = 1_000
const command = `node bench/transactions.ts ${process.argv.slice(2).join(' ')}`.trim()

const database = await startBenchDatabase(await embeddedBinaries())
const { db, connection } = database
// As in the service: connections that requests cannot take.
const workers = openDatabase({ connection, log: silentLog })
const bench = await createWalletBench(db, 'c', { endowment: 10n ** 24n })
const { chain, network_id } = bench
const tracker = startTracker({
  ...{ db: workers.db, clock: systemClock, log: silentLog, holder: randomUUIDv7() },
  ...{ network_id, name: { chain: 'c', network: 'mainnet' }, chain },
})

/** Starts a process with its share of the tenants; messages begin and end its load. */
const startLoad = async (index: number) => {
  const begin = Math.floor((index * tenants) / processes)
  const end = Math.floor(((index + 1) * tenants) / processes)
  const options: LoadOptions = {
    connection,
    first: firstAccount + begin * addressesEach,
    tenants: end - begin,
    rate: rate / tenants,
    ...{ addressesEach, openEach: 16 },
  }
  const child = fork(join(import.meta.dirname, 'transactions-load.ts'), [JSON.stringify(options)])
  const ended = once(child, 'exit')
  const answer = async (): Promise<unknown> => {
    const failed = ended.then(([code]) => Promise.reject(new Error(`the load ended: ${code}`)))
    failed.catch(() => {})
    const [message] = await Promise.race([once(child, 'message'), failed])
    return message
  }
  await answer()
  return {
    begin: () => child.send('begin'),
    end: async () => {
      child.send('end')
      return (await answer()) as LoadResult
    },
    ended,
  }
}
const loads = await Promise.all(Array.from({ length: processes }, (_, index) => startLoad(index)))

/** Milliseconds from each new block until it is stored, sorted. */
const measureDelays = async (): Promise<number[]> => {
  const delays: number[] = []
  const end = performance.now() + seconds * 1_000
  while (performance.now() < end) {
    const began = performance.now()
    const payer = bench.account(firstAccount)
    const { number } = chain.mine([{ payer, fee: 1n }])
    while ((tracker.status().block_number ?? -1) < number) await systemClock.sleep(1)
    delays.push(performance.now() - began)
    await systemClock.sleep(Math.max(0, blockMs - (performance.now() - began)))
  }
  return delays.sort((one, other) => one - other)
}

/** Milliseconds of CPU until now, of this process and of the database. */
const cpu = () => {
  const { user, system } = process.cpuUsage()
  return { own: (user + system) / 1_000, database: database.cpu() * 1_000 }
}

const show = (delays: readonly number[]) =>
  [0.5, 0.99, 1].map((share) =>
    delays[Math.min(delays.length - 1, Math.floor(delays.length * share))]!.toFixed(0),
  )

const idle = cpu()
const alone = await measureDelays()
const before = cpu()
const began = performance.now()
for (const load of loads) load.begin()
const beside = await measureDelays()
const results = await Promise.all(loads.map((load) => load.end()))
const elapsedMs = performance.now() - began
const after = cpu()
await Promise.all(loads.map(({ ended }) => ended))
await tracker.stop()
await chain.stop()
await workers.stop()
await database.stop()

const created = results.reduce((sum, one) => sum + one.created, 0)
const perSecond = (created / elapsedMs) * 1_000
const loadMs = results.reduce((sum, one) => sum + one.cpuMs, 0)
// What the tracker needs of the database for as many blocks is no part of a creation.
const trackerMs = ((before.database - idle.database) / alone.length) * beside.length
const databaseMs = after.database - before.database
const usedCores = (loadMs + databaseMs + after.own - before.own) / elapsedMs
const each = (ms: number) => (ms / Math.max(1, created)).toFixed(1)

await writeSection(
  'Blocks beside new transactions',
  command,
  `From a new block until the tracker has stored it, one block every ${blockMs} ms, while ${tenants} organizations together create ${rate} transactions a second in ${processes} process(es), each from ${addressesEach} address(es) with a webhook (reached: ${perSecond.toFixed(0)} a second). A creation took ${each(loadMs)} ms of CPU in its process and ${each(databaseMs - trackerMs)} ms in the database; together with the tracker ${usedCores.toFixed(1)} of ${availableParallelism()} cores were used. Goal: p99 under 500 ms.\n\n${table(
    ['', 'blocks', 'p50 ms', 'p99 ms', 'highest ms'],
    [
      ['alone', alone.length, ...show(alone)],
      ['beside them', beside.length, ...show(beside)],
    ],
  )}`,
)
