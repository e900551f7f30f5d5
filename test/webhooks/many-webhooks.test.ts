// One organization may have thousands of webhooks. What it gets must arrive, and must not delay the others.

import { expect, it } from 'vitest'
import { notificationTypes } from '../../src/contract/records/states.ts'
import { webhooksPerLook } from '../../src/storage/webhooks/delivery-claims.ts'
import { queueNotifications } from '../../src/storage/webhooks/notifications.ts'
import { freshDatabase } from '../helpers/database.ts'
import type { Caller } from '../helpers/wallets.ts'
import { createWebhookBench } from './harness.ts'
import { startReceiver } from './receiver.ts'

const database = await freshDatabase()

it('more webhooks than a courier looks at all get theirs, and another organization is among the first', async () => {
  const { bench, caller, clock, startCourier, settled } = await createWebhookBench(database)
  const receiver = await startReceiver()
  receiver.answer((response) => response.writeHead(204).end())
  const other = await bench.createCaller()
  const register = async ({ call }: Caller) =>
    (await call('RegisterWebhook', { webhook_endpoint: receiver.url, confirmation: 1 })).webhook_id
  const hooks: { organization_id: string; webhook_id: string }[] = []
  for (let made = 0; made < 2 * webhooksPerLook + 30; made++)
    hooks.push({ organization_id: caller.organization_id, webhook_id: await register(caller) })
  const quiet = { organization_id: other.organization_id, webhook_id: await register(other) }
  const notify = (ids: typeof quiet) => ({
    ...ids,
    network_id: bench.network_id,
    notification_type: notificationTypes.c,
    data: { transfers: [] },
  })
  const queued = [...hooks, ...hooks, ...hooks, quiet].map(notify)
  await queueNotifications(database.db, queued, new Date(clock.now()))
  await settled(startCourier())
  const received = receiver.received.map(({ json }) => json.webhook_id)
  expect(received).toHaveLength(queued.length)
  expect(new Set(received).size).toBe(hooks.length + 1)
  expect(received.indexOf(quiet.webhook_id)).toBeLessThan(32)
})
