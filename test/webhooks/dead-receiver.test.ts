import { createServer } from 'node:net'
import { expect, it } from 'vitest'
import { freshDatabase } from '../helpers/database.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { realClock } from './fake-clock.ts'
import { createWebhookBench } from './harness.ts'
import { startReceiver } from './receiver.ts'

const database = await freshDatabase()
const { pool } = database
const healthy = 100
// The same with 100,000 is in bench/deliveries.ts.
const queueLength = 20_000

/** A receiver that takes connections and says nothing. */
const startSilent = async (): Promise<string> => {
  const server = createServer(() => {}).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  server.unref()
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`
}

it('a dead receiver with a long queue costs a hundred healthy ones nothing', async () => {
  const bench = await createWebhookBench(database, 'c', realClock)
  const receiver = await startReceiver()
  const arrived = new Set<string>()
  receiver.answer((response, { json }) => {
    arrived.add(json.webhook_history_id)
    response.writeHead(204).end()
  })
  const hooks: string[] = []
  for (let made = 0; made < healthy; made++) hooks.push(await bench.register(receiver.url))
  const dead = await bench.register(await startSilent())
  // An attempt at the dead one lasts longer than this test: waiting for it would never end.
  const courier = bench.startCourier({ timeoutMs: 600_000, stopTimeoutMs: 0 })

  /** Notifies every healthy webhook. */
  const round = async (): Promise<void> => {
    const ids = await Promise.all(hooks.map((webhook_id) => bench.test(webhook_id)))
    courier.wake()
    await waitFor('all healthy ones were notified', () => ids.every((id) => arrived.has(id)))
  }
  await round()
  const held = process.memoryUsage().heapUsed

  await pool.query(
    `with notified as (
       insert into delivery (webhook_history_id, organization_id, network_id, webhook_id,
         notification_type, data, sequence, create_time)
       select gen_random_uuid(), organization_id, network_id, webhook_id,
         'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED',
         jsonb_build_object('filler', repeat('x', 500)), n, now()
       from webhook, generate_series(1, $2::int8) n where webhook_id = $1
       returning *)
     insert into delivery_queue (webhook_history_id, organization_id, webhook_id, sequence,
       webhook_status, next_attempt_time, retry_step)
     select webhook_history_id, organization_id, webhook_id, sequence, 'WEBHOOK_STATUS_PENDING',
       now(), 0 from notified`,
    [dead, queueLength],
  )
  courier.wake()
  await waitFor('the dead one is being tried', () => courier.status().in_flight > 0)
  for (let sent = 0; sent < 3; sent++) await round()
  // Received is not yet answered: those come to an end, and then the dead one is alone under way, with no
  // more of it in hand than it may have.
  await waitFor('no more than the dead one may have is in hand', () => {
    const { in_flight, claimed, unrecorded } = courier.status()
    return unrecorded === 0 && in_flight <= 16 && claimed <= 16
  })

  // Its attempts are all still open.
  expect(courier.status().in_flight).toBeGreaterThan(0)
  expect(process.memoryUsage().heapUsed - held).toBeLessThan(64 * 2 ** 20)
  const { rows } = await pool.query(
    'select count(*) from delivery_queue where webhook_id = $1 and next_attempt_time is not null',
    [dead],
  )
  expect(Number(rows[0].count)).toBe(queueLength)
}, 120_000)
