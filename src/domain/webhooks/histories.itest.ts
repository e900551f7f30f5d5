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
  let noted = 0
  const notify = (
    webhook_id: string,
    transaction_hash: Buffer,
    count = 1,
    { kilobytes = 0 }: { kilobytes?: number } = {},
  ) =>
    db.transaction().execute((trx) => {
      const scope = { organization_id, network_id, webhook_id }
      // Text that is not stored smaller than it is.
      const data = kilobytes > 0 ? { filler: randomBytes(kilobytes * 768).toString('base64') } : {}
      const one = { ...scope, notification_type: notificationTypes[service], data }
      const all = Array.from({ length: count }, () => ({ ...one, transaction_hash }))
      noted = Math.max(Date.now(), noted + 1)
      return queueNotifications(trx, all, new Date(noted))
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

  it('end a page where the bodies are too large together, and none is missed or repeated', async () => {
    const [hook, other, hash] = [await register(), await register(), randomBytes(32)]
    // One body is larger than a page.
    const ids: string[] = []
    for (const kilobytes of [1, 300, 300, 300, 300, 300, 1_200, 300, 1, 1])
      ids.push(...(await notify(ids.length % 5 === 4 ? other : hook, hash, 1, { kilobytes })))
    const field = { [transactionField]: family.formatTransactionHash(hash) }
    const walk = async (request: object, page_size: number) => {
      const pages: string[][] = []
      let page_token: string | undefined
      do {
        const { webhook_histories, pagination } = await call('ListWebhookHistories', {
          ...{ ...request, page_size },
          ...(page_token && { page_token }),
        })
        pages.push(
          webhook_histories.map(
            ({ webhook_history_id }: { webhook_history_id: string }) => webhook_history_id,
          ),
        )
        page_token = pagination.next_page_token
      } while (page_token)
      return pages
    }
    const newest = ids.toReversed()
    const mine = newest.filter((_, at) => (ids.length - 1 - at) % 5 !== 4)
    for (const page_size of [1, 2, 3, 100]) {
      expect((await walk(field, page_size)).flat()).toEqual(newest)
      expect((await walk({ ...field, webhook_id: hook }, page_size)).flat()).toEqual(mine)
      expect((await walk({ webhook_id: hook }, page_size)).flat()).toEqual(mine)
    }
    const cut = [newest.slice(0, 4), newest.slice(4, 8), newest.slice(8)]
    for (const page_size of [100, 4]) expect(await walk(field, page_size)).toEqual(cut)
    const all = await walk({}, 100)
    expect(all[0]).toEqual(cut[0])
    expect(new Set(all.flat()).size).toBe(all.flat().length)
    expect(new Set(all.flat()).isSupersetOf(new Set(newest))).toBe(true)
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
