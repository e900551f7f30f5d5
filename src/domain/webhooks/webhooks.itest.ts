import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { type Caller, createWalletBench } from '../../../test/helpers/wallets.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import { notificationTypes } from '../../contract/records/states.ts'
import type { WalletService } from '../../contract/variant.ts'
import { holdQueue } from '../../storage/webhooks/queue-pages.ts'
import { disableWebhook } from '../../storage/webhooks/webhooks.ts'

const { db, pool } = await freshDatabase()
const webhook_endpoint = 'https://receiver.invalid/hook'

describe.each<WalletService>(['t', 's', 'p', 'c'])('webhooks of %s', async (service) => {
  const bench = await createWalletBench(db, service)
  const { call, reason } = await bench.createCaller()
  const stranger = await bench.createCaller()
  const register = async (fields: object = {}, caller: Pick<Caller, 'call'> = { call }) =>
    (await caller.call('RegisterWebhook', { webhook_endpoint, confirmation: 3, ...fields }))
      .webhook_id as string
  const listed = async (webhook_id: string) =>
    (await call('ListWebhooks', { page_size: 100 })).webhooks.find(
      (one: { webhook_id: string }) => one.webhook_id === webhook_id,
    )
  const test = async (webhook_id: string) =>
    (await call('SendTestWebhook', { webhook_id })).webhook_history_id as string
  const histories = async (request: object = {}) =>
    (await call('ListWebhookHistories', { page_size: 100, ...request })).webhook_histories

  it('are registered for one wallet or for all, and listed', async () => {
    const { wallet_id } = await call('RegisterWallet', { name: 'w' })
    const all = await register()
    const one = await register({ wallet_id, confirmation: 0 })
    expect(await listed(all)).toMatchObject({
      wallet_id: '',
      webhook_endpoint,
      confirmation: 3,
      enabled: true,
      disable_reason: '',
      success_rate: null,
      last_error: '',
    })
    expect(await listed(one)).toMatchObject({ wallet_id, confirmation: 0 })
    const { webhooks } = await call('ListWebhooks', { wallet_id })
    expect(webhooks.map((row: { webhook_id: string }) => row.webhook_id)).toEqual([one])
    expect(await reason('RegisterWebhook', { ...(await listed(all)) })).toBe('INVALID_REQUEST')
    const foreign = { wallet_id, webhook_endpoint, confirmation: 1 }
    expect(await stranger.reason('RegisterWebhook', foreign)).toBe('WALLET_NOT_FOUND')
    expect((await stranger.call('ListWebhooks')).webhooks).toEqual([])
  })

  it('lead nowhere but to public https addresses', async () => {
    for (const bad of [
      'http://receiver.invalid/',
      'https://127.0.0.1/',
      'https://[::ffff:10.0.0.1]/',
      'https://user:pass@receiver.invalid/',
      'https://receiver.invalid:22/',
      'ftp://receiver.invalid/',
      'receiver.invalid',
      'https://receiver.invalid/\r\nx: y',
      'https:// /',
    ]) {
      const request = { webhook_endpoint: bad, confirmation: 1 }
      const error = await call('RegisterWebhook', request).catch((caught) => caught)
      expect(error, bad).toBeInstanceOf(OperationError)
      expect(error.errors).toMatchObject([
        { field: 'webhook_endpoint', reason: 'INVALID_ENDPOINT' },
      ])
    }
  })

  it('have a secret that can be read and changed', async () => {
    const webhook_id = await register()
    const { signing_secret } = await call('GetWebhookSigningSecret', { webhook_id })
    expect(signing_secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    const rotated = await call('RotateWebhookSigningSecret', { webhook_id })
    expect(rotated.signing_secret).not.toBe(signing_secret)
    expect(await call('GetWebhookSigningSecret', { webhook_id })).toEqual(rotated)
    const { rows } = await pool.query(
      'select secret_sealed, previous_secret_sealed from webhook where webhook_id = $1',
      [webhook_id],
    )
    for (const sealed of Object.values(rows[0]) as Buffer[])
      expect(sealed.includes(Buffer.from(signing_secret.slice(6), 'base64'))).toBe(false)
  })

  it('send a test that is numbered and listed like any other', async () => {
    const webhook_id = await register()
    const first = await test(webhook_id)
    const second = await test(webhook_id)
    const rows = await histories({ webhook_id })
    expect(
      rows.map((row: { webhook_history_id: string }) => row.webhook_history_id).sort(),
    ).toEqual([first, second].sort())
    expect(
      rows.find((row: { webhook_history_id: string }) => row.webhook_history_id === first),
    ).toEqual({
      webhook_history_id: first,
      webhook_id,
      create_time: expect.any(String),
      webhook_status: 'WEBHOOK_STATUS_PENDING',
      notification_type: notificationTypes[service],
      delivery_count: 0,
      delivery_time: null,
      data: {
        test: true,
        [service === 's' ? 'transaction_digest' : 'transaction_hash']: '',
        confirmations: 0,
        transfers: [],
        sequence: 1,
      },
    })
    expect(await call('ListWebhookAttempts', { webhook_history_id: first })).toEqual({
      webhook_history: rows.find(
        (row: { webhook_history_id: string }) => row.webhook_history_id === first,
      ),
      webhook_attempts: [],
    })
    const hour = Math.floor(Date.now() / 1000) - 3600
    expect(await histories({ webhook_id, end_time: hour })).toEqual([])
    expect(await histories({ webhook_id, start_time: hour })).toHaveLength(2)
  })

  it('require a confirmation of 0 to 1,000,000', async () => {
    for (const confirmation of [0, 1_000_000]) await register({ confirmation })
    for (const confirmation of [undefined, null, -1, 1.5, 1_000_001, '3'])
      expect(
        await reason('RegisterWebhook', { webhook_endpoint, confirmation }),
        `${confirmation}`,
      ).toBe('INVALID_REQUEST')
  })

  it('list histories newest first, ten at a time, between two seconds that both count', async () => {
    const caller = await bench.createCaller()
    const hooks = [await register({}, caller), await register({}, caller)]
    const ids: string[] = []
    for (let made = 0; made < 12; made++) {
      const webhook_id = hooks[made % 2]
      ids.push((await caller.call('SendTestWebhook', { webhook_id })).webhook_history_id)
      await pool.query('update delivery set create_time = $2 where webhook_history_id = $1', [
        ids.at(-1),
        // The last millisecond of its second.
        new Date(1_767_000_000_999 + made * 1000),
      ])
    }
    const list = async (request: object = {}) =>
      (await caller.call('ListWebhookHistories', request)).webhook_histories.map(
        (row: { webhook_history_id: string }) => row.webhook_history_id,
      )
    // Of all webhooks of the organization.
    expect(await list()).toEqual(ids.slice(2).toReversed())
    expect(await list({ page_size: 100 })).toEqual(ids.toReversed())
    expect(await list({ webhook_id: hooks[0] })).toEqual(
      ids.filter((_, index) => index % 2 === 0).toReversed(),
    )
    const [start_time, end_time] = [1_767_000_003, 1_767_000_005]
    expect(await list({ start_time, end_time })).toEqual(ids.slice(3, 6).toReversed())
    expect(await list({ webhook_id: hooks[1], start_time, end_time })).toEqual([ids[5], ids[3]])
    expect(await list({ start_time: end_time, end_time })).toEqual([ids[5]])
    for (const wrong of [
      { page_size: 0 },
      { page_size: 101 },
      { start_time: end_time, end_time: start_time },
      { page_token: 'x' },
    ])
      expect(await caller.reason('ListWebhookHistories', wrong)).not.toBe('OK')
  })

  it('list histories in pages without a gap or a repetition', async () => {
    const webhook_id = await register()
    const made = new Set<string>()
    for (let at = 0; at < 7; at++) made.add(await test(webhook_id))
    const seen: string[] = []
    let page_token = ''
    do {
      const page = await call('ListWebhookHistories', {
        webhook_id,
        page_size: 3,
        ...(page_token && { page_token }),
      })
      seen.push(
        ...page.webhook_histories.map(
          (row: { webhook_history_id: string }) => row.webhook_history_id,
        ),
      )
      page_token = page.pagination.next_page_token
    } while (page_token)
    expect(seen).toHaveLength(7)
    expect(new Set(seen)).toEqual(made)
  })

  it('that are disabled hold back and refuse, and continue when enabled', async () => {
    const webhook_id = await register()
    const history = await test(webhook_id)
    await db.transaction().execute(async (trx) => {
      await disableWebhook(trx, webhook_id, { reason: 'gone', now: new Date() })
      await holdQueue(trx, webhook_id)
    })
    expect(await listed(webhook_id)).toMatchObject({ enabled: false, disable_reason: 'gone' })
    expect(await histories({ webhook_id })).toMatchObject([
      { webhook_status: 'WEBHOOK_STATUS_ON_HOLD' },
    ])
    expect(await reason('SendTestWebhook', { webhook_id })).toBe('WEBHOOK_DISABLED')
    expect(await reason('RetryWebhookHistory', { webhook_history_id: history })).toBe(
      'WEBHOOK_DISABLED',
    )
    expect(await call('EnableWebhook', { webhook_id })).toEqual({})
    expect(await call('EnableWebhook', { webhook_id })).toEqual({})
    expect(await listed(webhook_id)).toMatchObject({ enabled: true, disable_reason: '' })
    expect(await histories({ webhook_id })).toMatchObject([
      { webhook_status: 'WEBHOOK_STATUS_PENDING' },
    ])
  })

  it('are disabled by their owner, which is not counted as a failure', async () => {
    const webhook_id = await register()
    await test(webhook_id)
    expect(await call('DisableWebhook', { webhook_id })).toEqual({})
    expect(await call('DisableWebhook', { webhook_id })).toEqual({})
    expect(await listed(webhook_id)).toMatchObject({
      enabled: false,
      disable_reason: 'DisableWebhook was called.',
      last_error: '',
    })
    expect(await histories({ webhook_id })).toMatchObject([
      { webhook_status: 'WEBHOOK_STATUS_ON_HOLD' },
    ])
    await call('EnableWebhook', { webhook_id })
    expect(await histories({ webhook_id })).toMatchObject([
      { webhook_status: 'WEBHOOK_STATUS_PENDING' },
    ])
  })

  it('are changed in part, and send waiting retries to a new endpoint at once', async () => {
    const webhook_id = await register()
    const { signing_secret } = await call('GetWebhookSigningSecret', { webhook_id })
    await test(webhook_id)
    await pool.query(
      `update delivery_queue set next_attempt_time = now() + interval '1 day', retry_step = 8,
         webhook_status = 'WEBHOOK_STATUS_IN_PROGRESS' where webhook_id = $1`,
      [webhook_id],
    )
    await pool.query('update webhook set failing_since = now() where webhook_id = $1', [webhook_id])
    const state = async () => {
      const { rows } = await pool.query(
        `select retry_step, next_attempt_time <= now() + interval '1 minute' as is_due, failing_since
         from delivery_queue join webhook using (webhook_id) where webhook_id = $1`,
        [webhook_id],
      )
      return rows[0]
    }
    await call('UpdateWebhook', { webhook_id, confirmation: 9 })
    expect(await listed(webhook_id)).toMatchObject({ webhook_endpoint, confirmation: 9 })
    await call('UpdateWebhook', { webhook_id, webhook_endpoint })
    expect(await state()).toMatchObject({ retry_step: 8, is_due: false })
    const other = 'https://other.invalid/hook'
    await call('UpdateWebhook', { webhook_id, webhook_endpoint: other })
    expect(await listed(webhook_id)).toMatchObject({ webhook_endpoint: other, confirmation: 9 })
    expect(await state()).toMatchObject({ retry_step: 0, is_due: true, failing_since: null })
    expect(await call('GetWebhookSigningSecret', { webhook_id })).toEqual({ signing_secret })
    expect(await reason('UpdateWebhook', { webhook_id })).toBe('INVALID_REQUEST')
    const inside = { webhook_id, webhook_endpoint: 'https://127.0.0.1/' }
    expect(await reason('UpdateWebhook', inside)).toBe('INVALID_REQUEST')
    expect(await listed(webhook_id)).toMatchObject({ webhook_endpoint: other })
  })

  it('choose their events where there is more than transfers', async () => {
    const both = ['WEBHOOK_EVENT_TRANSFER', 'WEBHOOK_EVENT_TRANSACTION_STATE']
    if (service !== 'c') {
      expect(
        await reason('RegisterWebhook', { webhook_endpoint, confirmation: 1, events: both }),
      ).toBe('INVALID_REQUEST')
      expect(await listed(await register())).toMatchObject({ events: [both[0]] })
      const events = ['WEBHOOK_EVENT_OPERATIONAL']
      expect(await listed(await register({ events }))).toMatchObject({ events })
      return
    }
    const webhook_id = await register()
    expect(await listed(webhook_id)).toMatchObject({ events: both })
    await call('UpdateWebhook', { webhook_id, events: ['WEBHOOK_EVENT_TRANSACTION_STATE'] })
    expect(await listed(webhook_id)).toMatchObject({ events: [both[1]], confirmation: 3 })
    const narrow = await register({ events: ['WEBHOOK_EVENT_TRANSFER'] })
    expect(await listed(narrow)).toMatchObject({ events: [both[0]] })
    for (const events of [[], ['x'], both[0], [...both, both[0]]])
      expect(await reason('UpdateWebhook', { webhook_id, events })).toBe('INVALID_REQUEST')
    const events = ['WEBHOOK_EVENT_INSTALLATION']
    expect(await reason('UpdateWebhook', { webhook_id, events })).toBe('PERMISSION_DENIED')
  })

  it('of an administrator cannot be changed by others where they name all organizations', async () => {
    const admin = await bench.createCaller({ role: 'ROLE_ADMIN' })
    const { organization_id } = admin
    const member = await bench.createCaller({ organization_id })
    const webhook_id = await register({ events: ['WEBHOOK_EVENT_INSTALLATION'] }, admin)
    const elsewhere = { webhook_id, webhook_endpoint: 'https://own.invalid/' }
    // Notifications that wait go to the new endpoint, also after the events were changed.
    const narrow = { webhook_id, events: ['WEBHOOK_EVENT_TRANSFER'] }
    for (const change of [elsewhere, narrow])
      expect(await member.reason('UpdateWebhook', change)).toBe('PERMISSION_DENIED')
    expect(await admin.reason('UpdateWebhook', elsewhere)).toBe('OK')
    // A role that may change the endpoint may also read the headers.
    const own = await register({}, member)
    const header = { webhook_id: own, header_key: 'authorization', header_value: 'Bearer secret' }
    await member.call('RegisterWebhookHeader', header)
    expect((await member.call('ListWebhookHeaders', { webhook_id: own })).webhook_headers).toEqual([
      expect.objectContaining({ header_value: 'Bearer secret' }),
    ])
  })

  it('deliver again one, or all failed ones since a time', async () => {
    const webhook_id = await register()
    const ids = [await test(webhook_id), await test(webhook_id), await test(webhook_id)]
    const fail = () =>
      pool.query(
        `update delivery_queue set webhook_status = 'WEBHOOK_STATUS_FAILED', next_attempt_time = null,
          retry_step = 9 where webhook_id = $1`,
        [webhook_id],
      )
    await fail()
    await pool.query(
      `update delivery set create_time = now() - interval '1 hour' where webhook_history_id = $1`,
      [ids[0]],
    )
    const due = async () =>
      (
        await pool.query(
          'select 1 from delivery_queue where webhook_id = $1 and next_attempt_time is not null and retry_step = 0',
          [webhook_id],
        )
      ).rowCount
    expect(await call('RetryWebhookHistory', { webhook_history_id: ids[0] })).toEqual({
      retried_count: 1,
    })
    expect(await due()).toBe(1)
    await fail()
    const start_time = Math.floor(Date.now() / 1000) - 1800
    expect(await call('RetryWebhookHistory', { webhook_id, start_time })).toEqual({
      retried_count: 2,
    })
    expect(await due()).toBe(2)
    expect(await call('RetryWebhookHistory', { webhook_id })).toEqual({ retried_count: 1 })
    expect(await call('RetryWebhookHistory', { webhook_id })).toEqual({ retried_count: 0 })
    const other = await register()
    const both = { webhook_history_id: ids[0], webhook_id: other }
    expect(await reason('RetryWebhookHistory', both)).toBe('WEBHOOK_HISTORY_NOT_FOUND')
    const narrow = { webhook_history_id: ids[0], start_time }
    expect(await reason('RetryWebhookHistory', narrow)).toBe('INVALID_REQUEST')
  })

  it('that are removed leave their history, and nothing is sent any more', async () => {
    const webhook_id = await register()
    await call('RegisterWebhookHeader', { webhook_id, header_key: 'x', header_value: 'y' })
    const history = await test(webhook_id)
    expect(await call('RemoveWebhook', { webhook_id })).toEqual({})
    expect(await call('RemoveWebhook', { webhook_id })).toEqual({})
    expect(await listed(webhook_id)).toBeUndefined()
    expect(await histories({ webhook_id })).toMatchObject([
      { webhook_history_id: history, webhook_status: 'WEBHOOK_STATUS_FAILED' },
    ])
    expect(await reason('RetryWebhookHistory', { webhook_history_id: history })).toBe(
      'WEBHOOK_NOT_FOUND',
    )
    const { rows } = await pool.query('select 1 from webhook_header where webhook_id = $1', [
      webhook_id,
    ])
    expect(rows).toEqual([])
  })

  it('of another organization are like none', async () => {
    const webhook_id = await register()
    const webhook_history_id = await test(webhook_id)
    for (const [operation, request, expected] of [
      ['UpdateWebhook', { webhook_id, confirmation: 1 }, 'WEBHOOK_NOT_FOUND'],
      ['DisableWebhook', { webhook_id }, 'WEBHOOK_NOT_FOUND'],
      ['GetWebhookSigningSecret', { webhook_id }, 'WEBHOOK_NOT_FOUND'],
      ['RotateWebhookSigningSecret', { webhook_id }, 'WEBHOOK_NOT_FOUND'],
      ['EnableWebhook', { webhook_id }, 'WEBHOOK_NOT_FOUND'],
      ['SendTestWebhook', { webhook_id }, 'WEBHOOK_NOT_FOUND'],
      ['ListWebhookHeaders', { webhook_id }, 'WEBHOOK_NOT_FOUND'],
      ['ListWebhookHistories', { webhook_id }, 'WEBHOOK_NOT_FOUND'],
      [
        'RegisterWebhookHeader',
        { webhook_id, header_key: 'a', header_value: 'b' },
        'WEBHOOK_NOT_FOUND',
      ],
      ['RetryWebhookHistory', { webhook_id }, 'WEBHOOK_NOT_FOUND'],
      ['RetryWebhookHistory', { webhook_history_id }, 'WEBHOOK_HISTORY_NOT_FOUND'],
      ['ListWebhookAttempts', { webhook_history_id }, 'WEBHOOK_HISTORY_NOT_FOUND'],
    ] as const) {
      expect(await stranger.reason(operation, request), operation).toBe(expected)
      const unknown = Object.fromEntries(
        Object.entries(request).map(([name, value]) => [
          name,
          name.endsWith('_id') ? randomUUID() : value,
        ]),
      )
      expect(await reason(operation, unknown), operation).toBe(expected)
      const nonsense = { ...unknown, webhook_id: 'x', webhook_history_id: 'x' }
      const named = Object.fromEntries(Object.entries(nonsense).filter(([name]) => name in request))
      expect(await reason(operation, named), operation).toBe(expected)
    }
    expect((await stranger.call('ListWebhookHistories')).webhook_histories).toEqual([])
    // Removing an unknown webhook is not an error, whether it exists elsewhere or not.
    for (const id of [webhook_id, randomUUID(), 'x'])
      expect(await stranger.call('RemoveWebhook', { webhook_id: id })).toEqual({})
    expect(await listed(webhook_id)).toMatchObject({ confirmation: 3, enabled: true })
  })
})
