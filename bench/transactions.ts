import { randomUUIDv7 } from 'node:crypto'
import { parseArgs } from 'node:util'
import { CreateTransaction } from '../src/domain/transactions/create.ts'
import { systemClock } from '../src/lib/clock.ts'
import { silentLog } from '../src/lib/log.ts'
import { openDatabase } from '../src/storage/pg/database.ts'
import { startTracker } from '../src/workers/tracker/tracker.ts'
import { embeddedBinaries } from '../test/helpers/postgres.ts'
import { createWalletBench } from '../test/helpers/wallets.ts'
import { startBenchDatabase } from './lib/bench-database.ts'
import { table, writeSection } from './lib/results.ts'

const { values } = parseArgs({
  options: {
    tenants: { type: 'string', default: '10' },
    rate: { type: 'string', default: '500' },
    seconds: { type: 'string', default: '15' },
    // The worst case is a queue on one address.
    addresses: { type: 'string', default: '1' },
  },
})
const tenants = Number(values.tenants)
const rate = Number(values.rate)
const seconds = Number(values.seconds)
const addressesEach = Number(values.addresses)
const blockMs = 200
const command = `node bench/transactions.ts ${process.argv.slice(2).join(' ')}`.trim()

const database = await startBenchDatabase(await embeddedBinaries())
const { db } = database
// As in the service: connections that requests cannot take.
const workers = openDatabase({ connection: database.connection, log: silentLog })
const bench = await createWalletBench(db, 'c', { endowment: 10n ** 24n })
const { chain, network_id } = bench
const tracker = startTracker({
  ...{ db: workers.db, clock: systemClock, log: silentLog, holder: randomUUIDv7() },
  ...{ network_id, name: { chain: 'c', network: 'mainnet' }, chain },
})
const users = await Promise.all(
  Array.from({ length: tenants }, async (_, tenant) => {
    const caller = await bench.createCaller()
    const addresses = Array.from({ length: addressesEach }, (_, at) =>
      bench.address(1_000 + tenant * addressesEach + at),
    )
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w' })
    await caller.call('BatchRegisterAddresses', { wallet_id, addresses })
    await caller.call('RegisterWebhook', {
      webhook_endpoint: 'https://receiver.invalid',
      confirmation: 1,
    })
    return { ...caller, wallet_id, addresses }
  }),
)

/** Milliseconds from each new block until it is stored, sorted. */
const measureDelays = async (): Promise<number[]> => {
  const delays: number[] = []
  const end = performance.now() + seconds * 1_000
  while (performance.now() < end) {
    const began = performance.now()
    const payer = bench.account(1_000)
    const { number } = chain.mine([{ payer, fee: 1n }])
    while ((tracker.status().block_number ?? -1) < number) await systemClock.sleep(1)
    delays.push(performance.now() - began)
    await systemClock.sleep(Math.max(0, blockMs - (performance.now() - began)))
  }
  return delays.sort((one, other) => one - other)
}

// The handler itself: the checks around it are measured by bench/operations.ts.
const { signal } = new AbortController()
let created = 0
let isOver = false
const runTenant = async (user: (typeof users)[number]): Promise<void> => {
  const { organization_id, wallet_id, addresses } = user
  const context = {
    ...bench.installation,
    principal: { credential_id: randomUUIDv7(), organization_id, role: 'ROLE_MEMBER' as const },
    ...{ service: 'c' as const, chain: 'c', operation: 'CreateTransaction', signal },
  }
  const running = new Set<Promise<unknown>>()
  const began = performance.now()
  for (let count = 0; !isOver; count++) {
    const from = addresses[count % addresses.length]!
    const request = { wallet_id, from, to: from, value: '1' }
    const one = CreateTransaction(context, request)
      .then(() => created++)
      .finally(() => running.delete(one))
    running.add(one)
    // At the rate of arrival however slow the answers are, up to what a client would have open.
    if (running.size >= 16) await Promise.race(running)
    const due = began + ((count + 1) * tenants * 1_000) / rate
    if (due > performance.now()) await systemClock.sleep(due - performance.now())
  }
  await Promise.all(running)
}

const show = (delays: readonly number[]) =>
  [0.5, 0.99, 1].map((share) =>
    delays[Math.min(delays.length - 1, Math.floor(delays.length * share))]!.toFixed(0),
  )

const alone = await measureDelays()
const load = users.map(runTenant)
const began = performance.now()
const beside = await measureDelays()
const perSecond = created / ((performance.now() - began) / 1_000)
isOver = true
await Promise.all(load)
await tracker.stop()
await chain.stop()
await workers.stop()
await database.stop()

await writeSection(
  'Blocks beside new transactions',
  command,
  `From a new block until the tracker has stored it, one block every ${blockMs} ms, while ${tenants} organizations together create ${rate} transactions a second, each from ${addressesEach} address(es) with a webhook (reached: ${perSecond.toFixed(0)} a second). Goal: p99 under 500 ms.\n\n${table(
    ['', 'blocks', 'p50 ms', 'p99 ms', 'highest ms'],
    [
      ['alone', alone.length, ...show(alone)],
      ['beside them', beside.length, ...show(beside)],
    ],
  )}`,
)
