import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import { notificationTypes } from '../../contract/records/states.ts'
import type { WalletService } from '../../contract/variant.ts'
import { queueNotifications } from '../../storage/webhooks/notifications.ts'

const { db, pool } = await freshDatabase()

describe.each<WalletService>(['t', 's', 'p', 'c'])('histories of %s', async (service) => {
  const { createCaller, family, network_id } = await createWalletBench(db, service)
  const { call, reason, organization_id } = await createCaller()
  const stranger = await createCaller()
  const register = async (): Promise<string> => {
    const webhook_endpoint = 'https://receiver.invalid/hook'
    return (await call('RegisterWebhook', { webhook_endpoint, confirmation: 3 })).webhook_id
  }
  const notify = (webhook_id: string, transaction_hash: Buffer, count = 1) =>
    db.transaction().execute((trx) => {
      const scope = { organization_id, network_id, webhook_id }
      const one = { ...scope, notification_type: notificationTypes[service], data: {} }
      const all = Array.from({ length: count }, () => ({ ...one, transaction_hash }))
      return queueNotifications(trx, all, new Date())
    })
  const { transactionField } = family
  const idsOf = async (request: object, caller = call): Promise<string[]> =>
    (await caller('ListWebhookHistories', { page_size: 100, ...request })).webhook_histories.map(
      ({ webhook_history_id }: { webhook_history_id: string }) => webhook_history_id,
    )

  it('are those of one transaction, of one webhook or of all, page by page', async () => {
    const [hook, other] = [await register(), await register()]
    const hash = randomBytes(32)
    const field = { [transactionField]: family.formatTransactionHash(hash) }
    const mine = await notify(hook, hash, 3)
    const others = await notify(other, hash)
    await notify(hook, randomBytes(32))
    await call('SendTestWebhook', { webhook_id: hook })

    expect((await idsOf(field)).sort()).toEqual([...mine, ...others].sort())
    expect((await idsOf({ ...field, webhook_id: hook })).sort()).toEqual(mine.toSorted())
    expect(await idsOf({ ...field, end_time: 1 })).toEqual([])
    expect(await idsOf(field, stranger.call)).toEqual([])
    const first = await call('ListWebhookHistories', { ...field, page_size: 3 })
    const page_token = first.pagination.next_page_token
    const rest = await idsOf({ ...field, page_size: 3, page_token })
    expect(rest).toEqual((await idsOf(field)).slice(3))
    // A page token is bound to its filters.
    const unknown = { [transactionField]: family.formatTransactionHash(randomBytes(32)) }
    expect(await reason('ListWebhookHistories', { ...unknown, page_token })).not.toBe('OK')
    expect(await idsOf(unknown)).toEqual([])
    expect(await reason('ListWebhookHistories', { [transactionField]: '0xnone' })).toBe(
      'INVALID_REQUEST',
    )
  })

  it('that failed are counted for each webhook, up to a bound', async () => {
    const [hook, other] = [await register(), await register()]
    await notify(hook, randomBytes(32), 5)
    const many = await notify(other, randomBytes(32), 1_001)
    await pool.query(
      `update delivery_queue set webhook_status = 'WEBHOOK_STATUS_FAILED', next_attempt_time = null
       where webhook_id = $1 and sequence <= 3 or webhook_history_id = any($2)`,
      [hook, many],
    )
    const listed = async (webhook_id: string) =>
      (await call('ListWebhooks', { webhook_id })).webhooks
    expect(await listed(hook)).toMatchObject([{ webhook_id: hook, failed_count: 3 }])
    expect(await listed(other)).toMatchObject([{ webhook_id: other, failed_count: 1_000 }])
    expect(await listed('none')).toEqual([])
    expect((await stranger.call('ListWebhooks', { webhook_id: hook })).webhooks).toEqual([])
    expect(await call('RetryWebhookHistory', { webhook_id: other })).toEqual({
      retried_count: 1_001,
    })
    expect(await listed(other)).toMatchObject([{ failed_count: 0 }])
  })
})
