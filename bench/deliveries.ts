import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { sql } from 'kysely'
import { Pool } from 'undici'
import { sign } from '../src/domain/webhooks/secret.ts'
import { ensureChain } from '../src/storage/chains.ts'
import type { Db } from '../src/storage/database.ts'
import { listDeliveries } from '../src/storage/deliveries.ts'
import {
  claimDeliveries,
  listQueuedWebhooks,
  releaseClaims,
} from '../src/storage/delivery-claims.ts'
import { embeddedBinaries } from '../test/helpers/postgres.ts'
import { startBadReceivers } from './lib/bad-receivers.ts'
import { type BenchDatabase, startBenchDatabase } from './lib/bench-database.ts'
import {
  addWebhook,
  type BenchReceiver,
  queue,
  sampleData,
  startBenchCourier,
  startBenchReceiver,
} from './lib/delivery-bench.ts'
import { startRecordedTracker } from './lib/recorded-tracker.ts'
import { table, writeSection } from './lib/results.ts'
import { registerTracked } from './lib/tracked.ts'

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'throughput,latency,history,dead' },
    deliveries: { type: 'string', default: '40000' },
    addresses: { type: 'string', default: '1000000' },
    blocks: { type: 'string', default: '300' },
    history: { type: 'string', default: '1000000' },
    queue: { type: 'string', default: '100000' },
  },
})
const wanted = new Set(values.only.split(','))
const command = `node bench/deliveries.ts ${process.argv.slice(2).join(' ')}`.trim()
const number = (value: number | string) => Number(value).toLocaleString('en')
const at = (times: number[], share: number) => {
  const sorted = times.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!.toFixed(1)
}
const ownCpu = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

const binaries = await embeddedBinaries()
const withDatabase = async (work: (database: BenchDatabase) => Promise<void>): Promise<void> => {
  const database = await startBenchDatabase(binaries)
  try {
    await work(database)
  } finally {
    await database.stop()
  }
}

const ownerIn = async (db: Db) => {
  const chain_id = await ensureChain(db, {
    chain: 'c',
    network: 'mainnet',
    create_time: new Date(),
  })
  const { organization_id } = await registerTracked(db, { chain_id, addresses: 1, contracts: [] })
  return { organization_id, chain_id }
}

const arrived = async (receiver: BenchReceiver, count: number) => {
  while ((await receiver.read()).count < count) await delay(20)
}

/** The same POSTs by undici alone: signed, nothing stored. */
const sendBare = async (receiver: BenchReceiver, count: number): Promise<number> => {
  const pool = new Pool(receiver.url, { connections: 32, pipelining: 1 })
  const secret = randomBytes(32)
  const begun = ownCpu()
  let next = 0
  const lane = async () => {
    while (next++ < count) {
      const id = `${next}`
      const timestamp = Math.floor(Date.now() / 1000)
      const body = JSON.stringify({ webhook_history_id: id, data: sampleData })
      const { body: answer } = await pool.request({
        path: '/bare',
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': `${timestamp}`,
          'webhook-signature': sign([secret], { id, timestamp, body }),
        },
        body,
      })
      await answer.dump()
    }
  }
  await Promise.all(Array.from({ length: 32 }, lane))
  await pool.close()
  return ownCpu() - begun
}

const receiver = await startBenchReceiver()
try {
  if (wanted.has('throughput'))
    await withDatabase(async (database) => {
      const { db } = database
      const count = Number(values.deliveries)
      const owner = await ownerIn(db)
      const hooks: string[] = []
      for (let made = 0; made < 20; made++)
        hooks.push(await addWebhook(db, owner, `${receiver.url}/plain`))
      const deliver = async (number: number) => {
        await queue(db, owner, hooks, { count: number })
        await sql`checkpoint`.execute(db)
        await receiver.read(true)
        const [service, server, begun] = [ownCpu(), database.cpu(), performance.now()]
        const courier = startBenchCourier(database)
        // Asking the receiver would cost more than many deliveries.
        while (courier.status().delivered < number || courier.status().unrecorded > 0)
          await delay(20)
        const spent = {
          seconds: (performance.now() - begun) / 1000,
          service: ownCpu() - service,
          server: database.cpu() - server,
        }
        await courier.stop()
        return spent
      }
      await sendBare(receiver, 2_000)
      await deliver(2_000)
      // In turn: what else the machine does, and at which clock, changes by the minute.
      const rounds: ({ bare: number } & Awaited<ReturnType<typeof deliver>>)[] = []
      for (let round = 0; round < 5; round++) {
        const part = Math.ceil(count / 5)
        rounds.push({ bare: await sendBare(receiver, part), ...(await deliver(part)) })
      }
      const sum = (of: (round: (typeof rounds)[number]) => number) =>
        rounds.reduce((total, round) => total + of(round), 0)
      const micros = (seconds: number) => ((seconds * 1e6) / count).toFixed(0)
      const [bare, service, server] = [
        sum((round) => round.bare),
        sum((round) => round.service),
        sum((round) => round.server),
      ]
      await writeSection(
        'Deliveries',
        command,
        `${number(count)} signed deliveries to 20 webhooks, receiver in another process; claimed, sent and recorded with their attempts, durable settings; five rounds in turn with undici alone. Goal: 0.5 of undici alone in the same run. Of single rounds: ${rounds.map((round) => (round.bare / (round.service + round.server)).toFixed(2)).join(', ')}.\n\n${table(
          ['', 'per CPU-second', 'service µs', 'database µs', 'per second', 'of undici alone'],
          [
            ['undici.Pool alone', (count / bare).toFixed(0), micros(bare), '', '', '1.00'],
            [
              'courier',
              (count / (service + server)).toFixed(0),
              micros(service),
              micros(server),
              (count / sum((round) => round.seconds)).toFixed(0),
              (bare / (service + server)).toFixed(2),
            ],
          ],
        )}`,
      )
    })

  if (wanted.has('latency'))
    await withDatabase(async (database) => {
      const { db } = database
      const [blocks, addresses] = [Number(values.blocks), Number(values.addresses)]
      const tracker = await startRecordedTracker(db, { blocks, transfers: 20, addresses })
      await addWebhook(db, tracker, `${receiver.url}/timed`)
      const courier = startBenchCourier(database)
      await receiver.read(true)
      const seen: number[] = []
      for (let block = 1; block <= blocks; block++) {
        seen[block] = performance.timeOrigin + performance.now()
        tracker.recorded.advance(block)
        // The next block comes when all of this one is told, as on a chain that is not behind.
        await tracker.reaches(block)
        while ((await listQueuedWebhooks(db)).length > 0) await delay(5)
        await delay(50)
      }
      const { arrivals } = await receiver.read()
      const times = arrivals
        .filter(([, , block]) => block > 10)
        .map(([, time, block]) => time - seen[block]!)
      await courier.stop()
      await tracker.stop()
      await writeSection(
        'From block to webhook',
        command,
        `From a block that a node announces to the POST at the receiver, confirmation 1, 20 transfers in a block, ${number(addresses)} tracked addresses. Goals: p50 50 ms, p99 250 ms.\n\n${table(
          ['POSTs', 'p50 ms', 'p99 ms', 'worst ms'],
          [[times.length, at(times, 0.5), at(times, 0.99), at(times, 1)]],
        )}`,
      )
    })

  if (wanted.has('history'))
    await withDatabase(async (database) => {
      const { db } = database
      const owner = await ownerIn(db)
      const hooks = [await addWebhook(db, owner, `${receiver.url}/a`)]
      const claim = async () => {
        const times: number[] = []
        for (let run = 0; run < 100; run++) {
          const begun = performance.now()
          const [due] = await listQueuedWebhooks(db)
          const now = new Date()
          const expire = new Date(now.getTime() + 60_000)
          const claims = await claimDeliveries(db, [{ ...due!, count: 64 }], { now, expire })
          times.push(performance.now() - begun)
          await releaseClaims(db, claims)
        }
        return times
      }
      await queue(db, owner, hooks, { count: 200 })
      const before = await claim()
      await sql`
        insert into delivery (webhook_history_id, organization_id, chain_id, webhook_id,
          notification_type, data, sequence, create_time)
        select gen_random_uuid(), ${owner.organization_id}::uuid, ${owner.chain_id}::int2,
          ${hooks[0]}::uuid, 'N', jsonb_build_object('filler', repeat('x', 600)), 1000000 + i,
          now() - i * interval '1 second'
        from generate_series(1, ${Number(values.history)}::int) i`.execute(db)
      await sql`
        insert into delivery_attempt (webhook_id, sequence, attempt, organization_id, attempt_time,
          duration_ms, status_code)
        select webhook_id, sequence, 1, organization_id, create_time, 12, 204 from delivery
        where sequence > 1000000 order by sequence desc`.execute(db)
      await sql`vacuum analyze`.execute(db)
      const after = await claim()
      const page = async (filter: { webhook_id?: string | undefined }, isFirst = false) => {
        const times: number[] = []
        for (let run = 0; run < 300; run++) {
          const create_time = new Date(Date.now() - Math.random() * Number(values.history) * 1000)
          const position = { create_time, webhook_history_id: hooks[0]! }
          const begun = performance.now()
          await listDeliveries(db, owner, {
            ...filter,
            after: isFirst ? undefined : position,
            limit: 101,
            now: new Date(),
          })
          times.push(performance.now() - begun)
        }
        return times
      }
      await page({})
      const lists = [
        ['first page of one webhook', await page({ webhook_id: hooks[0] }, true)],
        ['page of one webhook, anywhere', await page({ webhook_id: hooks[0] })],
        ['first page of all webhooks', await page({}, true)],
        ['page of all webhooks, anywhere', await page({})],
      ] as const
      await writeSection(
        'Webhook histories',
        command,
        `${number(values.history)} rows of history, pages of 100; a claim of 64 before and after they are there. Goals: page p99 5 ms, claims as fast as before.\n\n${table(
          ['', 'p50 ms', 'p99 ms'],
          [
            ...lists.map(([name, times]) => [name, at(times, 0.5), at(times, 0.99)]),
            ['claim, empty history', at(before, 0.5), at(before, 0.99)],
            ['claim, full history', at(after, 0.5), at(after, 0.99)],
          ],
        )}`,
      )
    })

  if (wanted.has('dead'))
    await withDatabase(async (database) => {
      const { db } = database
      const owner = await ownerIn(db)
      const bad = await startBadReceivers()
      const hooks: string[] = []
      for (let made = 0; made < 100; made++)
        hooks.push(await addWebhook(db, owner, `${receiver.url}/timed`))
      const courier = startBenchCourier(database)
      const rounds = async (count: number) => {
        const times: number[] = []
        for (let round = 0; round < count; round++) {
          await receiver.read(true)
          const begun = performance.timeOrigin + performance.now()
          await queue(db, owner, hooks, { count: 100, data: { round } })
          await arrived(receiver, 100)
          const { arrivals } = await receiver.read()
          times.push(...arrivals.map(([, time]) => time - begun))
        }
        return times
      }
      await rounds(5)
      const before = await rounds(30)
      const failing: string[] = []
      for (const url of bad.urls) failing.push(await addWebhook(db, owner, url))
      await queue(db, owner, failing, { count: 100 * failing.length })
      const beside = await rounds(30)
      const dead = await addWebhook(db, owner, bad.urls[0]!)
      await queue(db, owner, [dead], { count: Number(values.queue) })
      const memory = process.memoryUsage().rss
      const besideDead = await rounds(30)
      const grown = (process.memoryUsage().rss - memory) / 2 ** 20
      const { claimed } = courier.status()
      await courier.stop()
      bad.stop()
      const last = await (async () => {
        const quiet = startBenchCourier(database)
        const times = await rounds(10)
        await quiet.stop()
        return times
      })()
      await writeSection(
        'Receivers that fail beside healthy ones',
        command,
        `100 healthy webhooks, one notification each at a time: alone, then beside ${bad.urls.length} that fail in their ways (silence, an endless head, 500, 404, 429, 302, resets, closes at once, no HTTP, a body of 1 GiB, a slow body, refused connections) with 100 queued notifications each, then beside a silent one with ${number(values.queue)} queued notifications too, of which ${number(claimed)} deliveries were in hand. Goal: p99 within 1.2×. Memory of the service grew by ${grown.toFixed(0)} MiB beside the dead one.\n\n${table(
          ['', 'p50 ms', 'p99 ms', 'p99 of alone'],
          (
            [
              ['alone', before],
              ['beside those that fail', beside],
              ['beside those and a dead one with a long queue', besideDead],
              ['after they were gone', last],
            ] as const
          ).map(([name, times]) => [
            name,
            at(times, 0.5),
            at(times, 0.99),
            (Number(at(times, 0.99)) / Number(at(before, 0.99))).toFixed(2),
          ]),
        )}`,
      )
    })
} finally {
  receiver.child.kill()
}
