import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import type { WalletService } from '../../contract/variant.ts'

const { db, pool } = await freshDatabase()
const webhook_endpoint = 'https://receiver.invalid/hook'

describe.each<WalletService>(['t', 's', 'p', 'c'])('webhooks of %s', async (service) => {
  const bench = await createWalletBench(db, service)
  const { call, reason } = await bench.createCaller()
  const stranger = await bench.createCaller()
  const register = async () =>
    (await call('RegisterWebhook', { webhook_endpoint, confirmation: 3 })).webhook_id as string

  it('have headers of their own and those of all', async () => {
    const webhook_id = await register()
    const all = await call('RegisterWebhookHeader', { header_key: 'X-All', header_value: 'a' })
    const mine = { webhook_id, header_key: 'Authorization', header_value: 'Bearer find-me' }
    const { webhook_header_id } = await call('RegisterWebhookHeader', mine)
    expect((await call('ListWebhookHeaders', { webhook_id })).webhook_headers).toEqual([
      { webhook_header_id, ...mine },
    ])
    expect((await call('ListWebhookHeaders')).webhook_headers).toEqual([
      { ...all, webhook_id: '', header_key: 'X-All', header_value: 'a' },
    ])
    expect((await stranger.call('ListWebhookHeaders')).webhook_headers).toEqual([])
    // The same key is the same header.
    const again = { webhook_id, header_key: 'AUTHORIZATION', header_value: 'Bearer other' }
    expect(await call('RegisterWebhookHeader', again)).toEqual({ webhook_header_id })
    expect((await call('ListWebhookHeaders', { webhook_id })).webhook_headers).toEqual([
      { webhook_header_id, ...again },
    ])
    const { rows } = await pool.query('select header_value_sealed from webhook_header')
    expect(rows.some((row) => row.header_value_sealed.includes('Bearer'))).toBe(false)
    // As if it were not there, which is not an error, and it stays.
    expect(await stranger.call('RemoveWebhookHeader', { webhook_header_id })).toEqual({})
    expect((await call('ListWebhookHeaders', { webhook_id })).webhook_headers).toHaveLength(1)
    for (const id of [webhook_header_id, webhook_header_id, randomUUID(), 'x'])
      expect(await call('RemoveWebhookHeader', { webhook_header_id: id })).toEqual({})
    expect((await call('ListWebhookHeaders', { webhook_id })).webhook_headers).toEqual([])
    await call('RemoveWebhookHeader', all)
  })

  it.each([
    ['Host', 'evil'],
    ['content-length', '1'],
    ['Transfer-Encoding', 'chunked'],
    ['Connection', 'close'],
    ['webhook-signature', 'v1,x'],
    ['Webhook-Id', 'x'],
    ['proxy-authorization', 'x'],
    ['x y', 'z'],
    ['x:', 'z'],
    ['x-a', 'b\r\nhost: evil'],
    ['x-a', 'b\nc'],
    ['x-a', ' b'],
    ['x-a', 'ü'],
    ['ü', 'b'],
  ])('refuse the header %j: %j', async (header_key, header_value) => {
    expect(await reason('RegisterWebhookHeader', { header_key, header_value })).toBe(
      'INVALID_REQUEST',
    )
  })

  it('take so many headers and no more, however many come at once', async () => {
    const caller = await bench.createCaller()
    const { webhook_id } = await caller.call('RegisterWebhook', {
      webhook_endpoint: 'https://example.com',
      confirmation: 1,
    })
    for (const scope of [{ webhook_id }, {}]) {
      const reasons = await Promise.all(
        Array.from({ length: 60 }, (_, at) =>
          caller.reason('RegisterWebhookHeader', {
            ...scope,
            header_key: `x-${at}`,
            header_value: '',
          }),
        ),
      )
      expect(reasons.filter((one) => one === 'OK')).toHaveLength(50)
      expect(new Set(reasons)).toEqual(new Set(['OK', 'INVALID_REQUEST']))
      const { webhook_headers } = await caller.call('ListWebhookHeaders', scope)
      expect(webhook_headers).toHaveLength(50)
    }
  })

  it('take a header or are gone, when both is asked for at once', async () => {
    for (let round = 0; round < 5; round++) {
      const webhook_id = await register()
      const header = { webhook_id, header_key: 'x-a', header_value: '' }
      const reasons = await Promise.all([
        ...Array.from({ length: 5 }, () => reason('RegisterWebhookHeader', header)),
        reason('RemoveWebhook', { webhook_id }),
        ...Array.from({ length: 5 }, () => reason('RegisterWebhookHeader', header)),
      ])
      expect(['OK', 'WEBHOOK_NOT_FOUND']).toEqual(expect.arrayContaining([...new Set(reasons)]))
    }
  })

  it('take headers of up to 1,000 characters', async () => {
    const webhook_id = await register()
    const long = 'x'.repeat(1_000)
    const header = { webhook_id, header_key: long, header_value: long }
    await call('RegisterWebhookHeader', header)
    expect((await call('ListWebhookHeaders', { webhook_id })).webhook_headers).toMatchObject([
      header,
    ])
    for (const wrong of [
      { header_key: `${long}x` },
      { header_value: `${long}x` },
      { header_key: '' },
      { header_key: undefined },
      { header_value: undefined },
    ])
      expect(await reason('RegisterWebhookHeader', { ...header, ...wrong })).toBe('INVALID_REQUEST')
  })
})
