import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import { claimDeliveries } from './delivery-claims.ts'
import { queueNotifications } from './notifications.ts'
import { listStreamRows } from './streams.ts'
import { insertWebhook } from './webhooks.ts'

const { db } = await freshDatabase()
const { network_id, createCaller } = await createWalletBench(db, 'c')
const now = new Date()
const expire = new Date(now.getTime() + 60_000)

/** A webhook of a new organization with notifications of so many bytes. */
const queue = async (count: number, bytes: number) => {
  const { organization_id } = await createCaller()
  const webhook_id = randomUUIDv7()
  await insertWebhook(db, {
    ...{ webhook_id, organization_id, network_id, wallet_id: null, confirmation: 1 },
    webhook_endpoint: 'https://receiver.invalid',
    secret_sealed: randomBytes(8),
    create_time: now,
  })
  const notification_type = 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED' as const
  const data = { text: randomBytes(bytes / 2).toString('hex') }
  await queueNotifications(
    db,
    Array.from({ length: count }, () => ({
      ...{ organization_id, network_id, webhook_id, notification_type, data },
    })),
    now,
  )
  return { organization_id, webhook_id, count }
}

it('a claim ends at a bound of bytes, with at least one notification of each organization', async () => {
  const wanted = [await queue(20, 1_000_000), await queue(20, 100)]
  const claim = async () => {
    const claims = await claimDeliveries(db, wanted, { now, expire })
    return wanted.map(({ webhook_id }) =>
      claims.filter((one) => one.webhook_id === webhook_id).map(({ sequence }) => sequence),
    )
  }
  const [large, small] = await claim()
  expect(small).toHaveLength(20)
  expect(large!.length).toBeGreaterThanOrEqual(1)
  expect(large!.length).toBeLessThanOrEqual(5)
  const [next] = await claim()
  // The others are not claimed: they follow at once and in order.
  expect([...large!, ...next!]).toEqual(
    Array.from({ length: large!.length + next!.length }, (_, at) => at + 1),
  )
})

it('a notification that is larger than a claim may be is claimed alone', async () => {
  const wanted = [await queue(3, 12_000_000)]
  for (const sequence of [1, 2, 3])
    expect(await claimDeliveries(db, wanted, { now, expire })).toMatchObject([{ sequence }])
})

it('a page of streams ends at a bound of bytes, and the pages after it have the rest', async () => {
  const streams = [await queue(6, 1_000_000), await queue(6, 100)]
  const after = new Map<string, number>(streams.map(({ webhook_id }) => [webhook_id, 0]))
  const pages: number[] = []
  for (;;) {
    const wanted = [...after].map(([webhook_id, sequence]) => ({ webhook_id, after: sequence }))
    const rows = await listStreamRows(db, wanted, 200)
    if (rows.length === 0) break
    pages.push(rows.length)
    for (const { webhook_id, sequence } of rows) {
      expect(sequence).toBe(after.get(webhook_id)! + 1)
      after.set(webhook_id, sequence)
    }
  }
  expect(pages.length).toBeGreaterThanOrEqual(3)
  expect([...after.values()]).toEqual([6, 6])
})
