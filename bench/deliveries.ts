import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { sql } from 'kysely'
import { Pool } from 'undici'
import { sign } from '../src/domain/webhooks/secret.ts'
import { listQueuedWebhooks } from '../src/storage/webhooks/delivery-claims.ts'
import { embeddedBinaries } from '../test/helpers/postgres.ts'
import { benchDead } from './deliveries-dead.ts'
import { benchHistory } from './deliveries-history.ts'
import { type BenchDatabase, startBenchDatabase } from './lib/bench-database.ts'
import {
  addWebhook,
  at,
  type BenchReceiver,
  number,
  ownerIn,
  queue,
  sampleData,
  startBenchCourier,
  startBenchReceiver,
} from './lib/delivery-bench.ts'
import { startRecordedTracker } from './lib/recorded-tracker.ts'
import { table, writeSection } from './lib/results.ts'

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'throughput,latency,history,dead' },
    deliveries: { type: 'string', default: '40000' },
    addresses: { type: 'string', default: '1000000' },
    blocks: { type: 'string', default: '300' },
    history: { type: 'string', default: '1000000' },
    queue: { type: 'string', default: '100000' },
    repeats: { type: 'string', default: '5' },
  },
})
const wanted = new Set(values.only.split(','))
const command = `node bench/deliveries.ts ${process.argv.slice(2).join(' ')}`.trim()
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

/** The same POSTs by undici alone: signed, nothing stored. */
const sendBare = async (receiver: BenchReceiver, count: number): Promise<number> => {
  const pool = new Pool(receiver.url, { connections: 32, pipelining: 1 })
  const secret = randomBytes(32)
  const begun = ownCpu()
  let next = 0
  const loop = async () => {
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
          'webhook-signature': sign([secret], { id, timestamp, body: Buffer.from(body) }),
        },
        body,
      })
      await answer.dump()
    }
  }
  await Promise.all(Array.from({ length: 32 }, loop))
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
        // Before: the first look at a row after a checkpoint writes a copy of its page to the log, which
        // a notification that is delivered soon after it is stored never costs.
        await sql`checkpoint`.execute(db)
        await queue(db, owner, hooks, { count: number })
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
      // Until the code of both is compiled: undici alone costs half as much again in its first seconds.
      for (let warm = 0; warm < 3; warm++) {
        await sendBare(receiver, 5_000)
        await deliver(5_000)
      }
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
        // The next block comes when all of this one is delivered, as on a chain without lag.
        await tracker.reaches(block)
        while ((await listQueuedWebhooks(db)).webhooks.length > 0) await delay(5)
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

  if (wanted.has('history')) {
    const rows = Number(values.history)
    await withDatabase((database) => benchHistory(database, { receiver, command, rows }))
  }

  if (wanted.has('dead')) {
    const [queueLength, repeats] = [Number(values.queue), Number(values.repeats)]
    await withDatabase((database) =>
      benchDead(database, { receiver, command, queueLength, repeats }),
    )
  }
} finally {
  receiver.child.kill()
}
