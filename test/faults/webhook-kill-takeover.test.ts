// Couriers with the settings of the service: what one has in hand when it is killed, stopped or suspended.

import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { freshDatabase } from '../helpers/database.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { startReceiver } from '../webhooks/receiver.ts'
import { createQueueWorld } from './webhook-kill.ts'

const database = await freshDatabase()
const { pool, db, connection } = database
const quick = { everyMs: 10, timeoutMs: 30_000 }

/** A courier that has some deliveries under way, which the receiver does not answer, and more in its queue. */
const startBusy = async () => {
  const receiver = await startReceiver()
  const world = await createQueueWorld({ db, connection, url: receiver.url.slice(0, -1), count: 1 })
  const start = async () => {
    const child = await world.start()
    onTestFinished(() => void child.kill('SIGKILL'))
    return child
  }
  const held: { id: string; response: ServerResponse }[] = []
  const counts = new Map<string, number>()
  const answered = 400
  let isHolding = true
  receiver.answer((response, { headers }) => {
    const id = String(headers['webhook-id'])
    counts.set(id, (counts.get(id) ?? 0) + 1)
    if (isHolding && counts.size > answered) held.push({ id, response })
    else response.writeHead(204).end()
  })
  const rows = async () => {
    const { rows: queue } = await pool.query(
      `select webhook_history_id as id, claim_expire_time > clock_timestamp() as is_claimed,
         retry_step from delivery_queue where organization_id = $1`,
      [world.organization_id],
    )
    return queue as { id: string; is_claimed: boolean | null; retry_step: number }[]
  }
  const first = await start()
  // A receiver that has answered at once has more claimed for it than is sent to it at once.
  const ids = await world.queue(500)
  await waitFor('some are under way', () => held.length === 16, quick)
  return {
    ...{ first, start, world, held, counts, ids, rows },
    hold: (on: boolean) => {
      isHolding = on
    },
  }
}

test('of a courier that is killed another one delivers within 5 s', async () => {
  const { first, start, rows, hold, held, counts, ids } = await startBusy()
  await start()
  hold(false)
  const before = counts.size
  first.kill('SIGKILL')
  const killed = performance.now()
  const under = held.map(({ id }) => id)
  await waitFor('all are delivered', async () => (await rows()).length === 0, quick)
  expect(performance.now() - killed).toBeLessThan(5_000)
  expect(counts.size).toBeGreaterThan(before)
  // What was under way is repeated, nothing else.
  expect(ids.filter((id) => counts.get(id) !== (under.includes(id) ? 2 : 1))).toEqual([])
}, 60_000)

test('of a courier that is stopped another one continues within 1 s', async () => {
  const { first, start, rows, hold, held, counts, ids } = await startBusy()
  await start()
  hold(false)
  first.kill('SIGTERM')
  const stopped = performance.now()
  await waitFor('all others are delivered', () => counts.size === 500, quick)
  expect(performance.now() - stopped).toBeLessThan(1_000)
  // What is under way it keeps, however long that takes.
  await delay(5_000)
  for (const { response } of held) response.writeHead(204).end()
  await waitFor('all are recorded', async () => (await rows()).length === 0, quick)
  expect(ids.filter((id) => counts.get(id) !== 1)).toEqual([])
}, 60_000)

test('a courier that was suspended does not record over the one that took over', async () => {
  const { first, start, rows, held, counts, ids } = await startBusy()
  const mine = held.splice(0)
  const second = await start()
  first.kill('SIGSTOP')
  // The second one has them under way when the first one continues.
  await waitFor('they were taken over', () => held.length >= 16, quick)
  const theirs = [...held]
  for (const { response } of mine) response.writeHead(204).end()
  first.kill('SIGCONT')
  const attempts = async () => {
    const { rows: found } = await pool.query(
      `select d.webhook_history_id as id from delivery_attempt a
       join delivery d on d.webhook_id = a.webhook_id and d.sequence = a.sequence
       where d.webhook_history_id = any($1)`,
      [mine.map(({ id }) => id)],
    )
    return found.length
  }
  await waitFor('the first one records', async () => (await attempts()) === mine.length, quick)
  const claimed = new Map((await rows()).map((row) => [row.id, row.is_claimed]))
  expect(theirs.filter(({ id }) => claimed.get(id) !== true)).toEqual([])
  second.kill('SIGKILL')
  for (const { response } of held.splice(0)) response.destroy()
  const answering = setInterval(() => {
    for (const { response } of held.splice(0)) response.writeHead(204).end()
  }, 10)
  onTestFinished(() => clearInterval(answering))
  await waitFor('all are delivered', async () => (await rows()).length === 0, quick)
  expect(ids.filter((id) => !counts.has(id))).toEqual([])
  // In the hands of the first, of the second, and after that one was killed.
  expect(Math.max(...counts.values())).toBeLessThanOrEqual(3)
}, 60_000)
