import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { disableWebhook, enableWebhook } from '../src/storage/webhooks/webhooks.ts'
import type { BenchDatabase } from './lib/bench-database.ts'
import {
  addWebhook,
  at,
  type BenchReceiver,
  number,
  ownerIn,
  queue,
  startBadReceivers,
  startBenchCourier,
} from './lib/delivery-bench.ts'
import { median, table, writeSection } from './lib/results.ts'

/** How soon healthy receivers get notifications: alone, beside failing ones, beside a dead one with a long queue. */
export async function benchDead(
  database: BenchDatabase,
  {
    receiver,
    command,
    queueLength,
    repeats,
  }: { receiver: BenchReceiver; command: string; queueLength: number; repeats: number },
): Promise<void> {
  const { db } = database
  const owner = await ownerIn(db)
  const bad = await startBadReceivers()
  const hooks: string[] = []
  for (let made = 0; made < 100; made++)
    hooks.push(await addWebhook(db, owner, `${receiver.url}/timed`))
  const failing: string[] = []
  for (const url of bad.urls) failing.push(await addWebhook(db, owner, url))
  const dead = await addWebhook(db, owner, bad.urls[0]!)
  // Short, or every change from one phase to the next would wait for the silent ones.
  const courier = startBenchCourier(database, { timeoutMs: 2_000 })
  const notify = async (rounds: number) => {
    const times: number[] = []
    for (let round = 0; round < rounds; round++) {
      await receiver.read(true)
      const begun = performance.timeOrigin + performance.now()
      await queue(db, owner, hooks, { count: 100, data: { round } })
      await arrived(receiver, 100)
      const { arrivals } = await receiver.read()
      times.push(...arrivals.map(([, time]) => time - begun))
    }
    return times
  }
  // What a phase leaves behind is not for the next one to pay.
  const settle = async () => {
    await sql`vacuum analyze delivery_queue`.execute(db)
    await sql`checkpoint`.execute(db)
    await notify(3)
  }
  const hold = async () => {
    for (const webhook_id of [...failing, dead])
      await db.transaction().execute(async (trx) => {
        const stop = { reason: 'bench', now: new Date() }
        await disableWebhook(trx, webhook_id, stop)
      })
    while (courier.status().claimed > 0) await delay(50)
  }
  const open = (webhook_ids: readonly string[]) =>
    Promise.all(webhook_ids.map((webhook_id) => enableWebhook(db, webhook_id, new Date())))
  const phases = ['alone', 'beside those that fail', 'beside those and a dead one'] as const
  const blocks: Record<(typeof phases)[number], number[]>[] = []
  const rounds = 12
  let [held, grown] = [0, 0]
  await notify(40)
  for (let block = 0; block < repeats; block++) {
    await hold()
    await settle()
    const alone = await notify(rounds)
    await open(failing)
    await queue(db, owner, failing, { count: 100 * failing.length })
    await settle()
    const beside = await notify(rounds)
    await open([dead])
    await queue(db, owner, [dead], { count: queueLength })
    await settle()
    const memory = process.memoryUsage().rss
    const besideDead = await notify(rounds)
    held = Math.max(held, courier.status().claimed)
    grown = Math.max(grown, process.memoryUsage().rss - memory)
    blocks.push({ alone, [phases[1]]: beside, [phases[2]]: besideDead })
    // So that each block begins as the first did.
    const gone = [...failing, dead]
    await sql`delete from delivery_queue where webhook_id = any(${gone}::uuid[])`.execute(db)
  }
  await hold()
  await settle()
  const last = await notify(rounds)
  await courier.stop()
  bad.child.kill()
  const middle = (of: (block: (typeof blocks)[number]) => number) => median(blocks.map(of))
  const p99 = (times: number[]) => Number(at(times, 0.99))
  await writeSection(
    'Receivers that fail beside healthy ones',
    command,
    `100 healthy webhooks, one notification each at a time, in ${blocks.length} blocks of three phases of ${number(100 * rounds)} deliveries: alone, beside ${bad.urls.length} that fail in their ways (silence, an endless head, 500, 404, 429, 302, resets, closes at once, no HTTP, a body of 1 GiB, a slow body, refused connections) with 100 queued notifications each, and beside a silent one with ${number(queueLength)} queued notifications too. Median of the blocks, from before the notifications are stored to their arrival. Goal: p99 within 1.2× of alone. At most ${number(held)} deliveries were in hand; memory of the service grew by ${(grown / 2 ** 20).toFixed(0)} MiB while the long queue stood. Alone again at the end: p99 ${at(last, 0.99)} ms.\n\n${table(
      ['', 'p50 ms', 'p99 ms', 'p99 of alone, of each block', 'median'],
      phases.map((phase) => [
        phase,
        middle((block) => Number(at(block[phase], 0.5))).toFixed(1),
        middle((block) => p99(block[phase])).toFixed(1),
        blocks.map((block) => (p99(block[phase]) / p99(block.alone)).toFixed(2)).join(', '),
        middle((block) => p99(block[phase]) / p99(block.alone)).toFixed(2),
      ]),
    )}`,
  )
}

const arrived = async (receiver: BenchReceiver, count: number) => {
  while ((await receiver.read()).count < count) await delay(20)
}
