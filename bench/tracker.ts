import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { oneHelper } from '../src/app/cluster/member.ts'
import { embeddedBinaries, systemBinaries } from '../test/helpers/postgres.ts'
import { type BenchDatabase, startBenchDatabase } from './lib/bench-database.ts'
import { table, writeSection } from './lib/results.ts'
import { measureCatchUp } from './tracker-catch-up.ts'
import { measureLatency } from './tracker-latency.ts'
import { measurePages } from './tracker-pages.ts'
import type { CatchUpDone, CatchUpTask } from './tracker-process.ts'
import { measureRegistration } from './tracker-register.ts'

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'catch-up,flat,latency,pages,register' },
    blocks: { type: 'string', default: '2000' },
    addresses: { type: 'string', default: '100000' },
    // 10,000,000 addresses take some minutes to register.
    sizes: { type: 'string', default: '1000,100000,10000000' },
    'latency-addresses': { type: 'string', default: '1000000' },
    transfers: { type: 'string', default: '10000000' },
    register: { type: 'string', default: '1000000' },
  },
})
const wanted = new Set(values.only.split(','))
const number = (text: string) => Number(text).toLocaleString('en')
const perBlock = 50
const command = `node bench/tracker.ts ${process.argv.slice(2).join(' ')}`.trim()
const at = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!.toFixed(1)

const withDatabase = async <result>(
  binaries: string,
  work: (database: BenchDatabase) => Promise<result>,
): Promise<result> => {
  const database = await startBenchDatabase(binaries)
  try {
    return await work(database)
  } finally {
    await database.stop()
  }
}

async function catchUp(task: CatchUpTask): Promise<CatchUpDone[]> {
  // As the processes of the service.
  const child = fork(join(import.meta.dirname, 'tracker-process.ts'), { execArgv: [oneHelper] })
  const all: CatchUpDone[] = []
  child.on('message', (done) => all.push(done as CatchUpDone))
  child.send(task)
  await once(child, 'exit')
  if (all.length < task.times) throw new Error('the process ended early')
  return all
}

const embedded = await embeddedBinaries()
const system = await systemBinaries()
const engines = [['embedded', embedded], ...(system ? [['server', system] as const] : [])] as const

if (wanted.has('catch-up')) {
  const addresses = Number(values.addresses)
  const size = { blocks: Number(values.blocks), transfers: perBlock, addresses }
  const rows: unknown[][] = []
  for (const [name, binaries] of engines)
    for (const [index, done] of (await catchUp({ binaries, size, times: 3 })).entries()) {
      const { events, wall, service, database, version } = done
      rows.push([
        `${name} PostgreSQL ${version}`,
        index === 0 ? 'the first' : 'a later one',
        (events / (service + database)).toFixed(0),
        ((service * 1e6) / events).toFixed(0),
        ((database * 1e6) / events).toFixed(0),
        wall.toFixed(1),
      ])
    }
  await writeSection(
    'Catching up',
    command,
    `A recorded chain of ${number(values.blocks)} blocks with ${perBlock} ERC-20 transfers each, replayed from memory, ${number(values.addresses)} tracked addresses that receive them; every block proved against its header, one transfer row per event, every touched balance read and stored. Durable settings. Each engine has a process of its own, which catches up three times on new databases: the first time its code is not compiled yet. Goal: 12,000 events per CPU-second.\n\n${table(
      [
        'Database',
        'time in its process',
        'events per CPU-second, all in',
        'service µs per event',
        'database µs per event',
        'wall s',
      ],
      rows,
    )}`,
  )
}

if (wanted.has('flat')) {
  const blocks = 300
  const rows: unknown[][] = []
  let base = 0
  for (const size of ['1000', ...values.sizes.split(',')]) {
    const addresses = Number(size)
    const spent = await withDatabase(system ?? embedded, (database) =>
      measureCatchUp(database, { blocks, transfers: perBlock, addresses, active: 1_000 }),
    )
    const cost = ((spent.service + spent.database) * 1_000) / blocks
    // The first one of all warms up and does not count.
    if (rows.length === 0) base = 0
    rows.push([number(size), cost.toFixed(2), base ? (cost / base).toFixed(2) : 'warm-up'])
    base ||= rows.length === 1 ? 0 : cost
  }
  rows.shift()
  if (rows[0]) rows[0][2] = '1.00'
  await writeSection(
    'Cost of a block by tracked addresses',
    command,
    `CPU of service and database for a block of ${perBlock} transfers to 1,000 of the addresses, ${blocks} blocks each. Goal: within 1.3 times.\n\n${table(
      ['Tracked addresses', 'CPU ms per block', 'of the first'],
      rows,
    )}`,
  )
}

if (wanted.has('latency')) {
  const addresses = Number(values['latency-addresses'])
  const times = await withDatabase(embedded, (database) =>
    measureLatency(database, { blocks: 210, transfers: perBlock, addresses }),
  )
  await writeSection(
    'From block to list',
    command,
    `From the announcement of a block with ${perBlock} transfers to their presence in ListTransfers, ${number(values['latency-addresses'])} tracked addresses, ${times.length} blocks: p50 ${at(times, 0.5)} ms, p99 ${at(times, 0.99)} ms (goals 30 and 150).`,
  )
}

if (wanted.has('pages')) {
  const { first, deep, depth } = await withDatabase(system ?? embedded, (database) =>
    measurePages(database, Number(values.transfers)),
  )
  await writeSection(
    'Pages of transfers',
    command,
    `Pages of 100 of one wallet among ${number(values.transfers)} transfers, 200 times each: planning and execution as the server counts them (goal 5 ms p99), and seen from the client.\n\n${table(
      ['Page', 'p50 ms', 'p99 ms', 'client p50 ms', 'client p99 ms'],
      [
        { page: 'first', times: first },
        { page: number(String(depth)), times: deep },
      ].map(({ page, times: { client, database } }) => [
        page,
        ...[at(database, 0.5), at(database, 0.99), at(client, 0.5), at(client, 0.99)],
      ]),
    )}`,
  )
}

if (wanted.has('register')) {
  const { seconds, growth } = await withDatabase(embedded, (database) =>
    measureRegistration(database, Number(values.register)),
  )
  await writeSection(
    'Registering addresses',
    command,
    `${number(values.register)} addresses by BatchRegisterAddresses of 1,000: ${seconds.toFixed(1)} s (goal for 1,000,000: 120 s); the memory of the service grew by ${growth.toFixed(0)} MiB.`,
  )
}
