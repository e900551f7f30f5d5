import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { type Caller, createWalletBench } from '../../../test/helpers/wallets.ts'
import { systemClock } from '../../lib/clock.ts'
import { findCursor } from '../../storage/tracking/blocks.ts'
import { acquireLease } from '../../storage/tracking/leases.ts'
import { createMonths } from '../janitor/months.ts'
import { releasePage } from '../tracker/releasing.ts'
import { findAncestor, rollBack } from '../tracker/reorg.ts'
import { storeBeginning, storeBlocks } from '../tracker/store.ts'
import type { TrackerTools } from '../tracker/tools.ts'

const { db, pool } = await freshDatabase()
const never = new AbortController().signal
let networks = 0

/** A chain whose blocks are stored one by one, and two organizations with a wallet each. */
const begin = async (limits: Partial<TrackerTools> = {}) => {
  const network = `fan-out-${networks++}`
  const bench = await createWalletBench(db, 'c', { network, salt: network })
  const { chain, network_id, account, address } = bench
  const lease = await acquireLease(db, { name: network, holder: randomUUIDv7(), ttl_ms: 3_600_000 })
  const tools: TrackerTools = {
    db,
    clock: systemClock,
    network_id,
    chain,
    lease: { name: network, epoch: lease!.epoch },
    window: 64,
    ...limits,
  }
  const [large, small] = [await bench.createCaller(), await bench.createCaller()]
  const wallets: string[] = []
  for (const [at, caller] of [large, small].entries())
    wallets.push(
      (
        await caller.call('RegisterWallet', {
          name: 'w',
          confirmation: 1,
          address: address(at + 1),
        })
      ).wallet_id,
    )
  await storeBeginning(tools, chain.canonical().at(-1)!)
  const addWebhooks = async (caller: Caller, count: number) => {
    await pool.query(
      `insert into webhook (webhook_id, organization_id, network_id, webhook_endpoint, confirmation,
         webhook_state, secret_sealed, next_sequence, create_time, update_time)
       select gen_random_uuid(), $1, $2, 'https://example.org', 1, 'WEBHOOK_STATE_ENABLED', $3, 1,
         now(), now() from generate_series(1, $4)`,
      [caller.organization_id, network_id, randomBytes(8), count],
    )
  }
  const register = async (caller: Caller, fields: object = {}): Promise<string> =>
    (
      await caller.call('RegisterWebhook', {
        webhook_endpoint: 'https://receiver.invalid',
        confirmation: 1,
        ...fields,
      })
    ).webhook_id
  /** Stores the next block of the chain. */
  const store = async () => {
    const cursor = (await findCursor(db, network_id))!
    const position = { number: cursor.block_number, hash: cursor.block_hash }
    const event = (await chain.follow(position, never)[Symbol.asyncIterator]().next()).value
    await createMonths(db)(event.blocks.map(({ time }: { time: number }) => time))
    return await storeBlocks(tools, event.blocks)
  }
  /** A transaction that pays some accounts, in a block that is stored. */
  const pay = async (...values: [to: number, value: bigint][]) => {
    chain.mine([{ movements: values.map(([to, value]) => ({ to: account(to), value })) }])
    return await store()
  }
  const storeAll = async () => {
    const head = chain.canonical().length - 1
    while ((await findCursor(db, network_id))!.block_number < head) await store()
  }
  const goBack = async () => await rollBack(tools, (await findAncestor(tools, never))!)
  const count = async (table: 'delivery' | 'notification_event', { organization_id }: Caller) =>
    (
      await pool.query(`select count(*)::int4 as count from ${table} where organization_id = $1`, [
        organization_id,
      ])
    ).rows[0].count as number
  const numbered = async ({ organization_id }: Caller) =>
    (
      await pool.query(
        `select count(*)::int4 as count from delivery
         where organization_id = $1 and sequence is not null`,
        [organization_id],
      )
    ).rows[0].count as number
  /** The values that a webhook was notified of, with their states where they are not final. */
  const notified = async (webhook_id: string): Promise<string[]> => {
    const { rows } = await pool.query(
      `select sequence::int4, data from delivery
       where webhook_id = $1 and sequence is not null order by sequence`,
      [webhook_id],
    )
    expect(rows.map(({ sequence }) => sequence)).toEqual(rows.map((_, at) => at + 1))
    return rows.map(({ data }) =>
      data.transfers
        .map((one: { value: string; transfer_state: string }) =>
          one.transfer_state.endsWith('REORGED') ? `-${one.value}` : one.value,
        )
        .join(),
    )
  }
  const drain = async () => {
    while ((await releasePage(tools)).isMore);
  }
  return {
    ...{ bench, chain, account, tools, large, small, wallets, addWebhooks, register },
    ...{ store, storeAll, pay, goBack, count, numbered, notified, drain },
  }
}

describe('an organization with 4,000 webhooks', () => {
  it('adds one row to a block, and the notification of another organization is released with it', async () => {
    const { large, small, addWebhooks, register, pay, count, numbered, notified, tools, drain } =
      await begin()
    await addWebhooks(large, 4_000)
    const webhook_id = await register(small)
    const { notifications } = await pay([1, 7n], [2, 8n])
    expect(notifications).toEqual({ count: 1, isMore: true })
    expect(await notified(webhook_id)).toEqual(['8'])
    expect([await count('delivery', large), await count('notification_event', large)]).toEqual([
      0, 1,
    ])
    // The next block too, while the first is being expanded.
    await releasePage(tools)
    const expanded = await count('delivery', large)
    expect(expanded).toBeGreaterThan(0)
    expect(expanded).toBeLessThanOrEqual(500)
    await pay([1, 5n], [2, 6n])
    expect(await notified(webhook_id)).toEqual(['8', '6'])
    expect(await numbered(large)).toBe(0)
    await drain()
    expect(await count('notification_event', large)).toBe(0)
    expect(await numbered(large)).toBe(8_000)
    const { rows } = await pool.query(
      `select count(distinct (webhook_id, sequence))::int4 as count, min(sequence)::int4 as first,
         max(sequence)::int4 as last from delivery where organization_id = $1`,
      [large.organization_id],
    )
    expect(rows[0]).toEqual({ count: 8_000, first: 1, last: 2 })
  })

  it('does not delay the rollback of others, and is notified of it without gaps', async () => {
    const setup = await begin()
    const { large, small, chain, account, addWebhooks, register, pay, storeAll, goBack } = setup
    const { count, numbered, notified, tools, drain } = setup
    await addWebhooks(large, 4_000)
    const webhook_id = await register(small)
    await pay([1, 7n], [2, 8n])
    await drain()
    expect(await numbered(large)).toBe(4_000)
    const to = (who: number, value: bigint) => ({ to: account(who), value })
    chain.reorganize(1, [[{ movements: [to(1, 5n), to(2, 9n)] }], []])
    expect(await goBack()).toBe(true)
    // The rollback has written one row for the large organization, and retracted what the small one was sent.
    expect([await count('delivery', large), await count('notification_event', large)]).toEqual([
      4_000, 1,
    ])
    expect(await notified(webhook_id)).toEqual(['8', '-8'])
    await releasePage(tools)
    const written = (await count('delivery', large)) - 4_000
    expect(written).toBeGreaterThan(0)
    expect(written).toBeLessThanOrEqual(500)
    // The new branch is stored meanwhile.
    await storeAll()
    expect(await notified(webhook_id)).toEqual(['8', '-8', '9'])
    expect(await count('delivery', large)).toBe(4_000 + written)
    await drain()
    expect(await count('notification_event', large)).toBe(0)
    const { rows } = await pool.query(
      `select sequence::int4, data->'transfers'->0->>'value' as value,
         data->'transfers'->0->>'transfer_state' as state, count(distinct webhook_id)::int4 as count
       from delivery where organization_id = $1 group by 1, 2, 3 order by 1`,
      [large.organization_id],
    )
    expect(rows).toEqual([
      { sequence: 1, value: '7', state: 'TRANSFER_STATE_SUCCESS', count: 4_000 },
      { sequence: 2, value: '7', state: 'TRANSFER_STATE_REORGED', count: 4_000 },
      { sequence: 3, value: '5', state: 'TRANSFER_STATE_SUCCESS', count: 4_000 },
    ])
  })

  it('has its waiting notifications of removed blocks deleted later, and none of them is released', async () => {
    const setup = await begin()
    const { large, chain, addWebhooks, pay, storeAll, goBack } = setup
    const { count, numbered, tools, drain } = setup
    await addWebhooks(large, 300)
    await pool.query('update webhook set confirmation = 3 where organization_id = $1', [
      large.organization_id,
    ])
    await pay([1, 7n])
    await pay([1, 8n])
    await drain()
    expect([await count('delivery', large), await numbered(large)]).toEqual([600, 0])
    // Two reorganizations before the first one is worked off; the second one goes deeper.
    chain.reorganize(1, [[], []])
    expect(await goBack()).toBe(true)
    await storeAll()
    chain.reorganize(3, [[], [], [], []])
    expect(await goBack()).toBe(true)
    expect([await count('delivery', large), await count('notification_event', large)]).toEqual([
      600, 1,
    ])
    await storeAll()
    await releasePage(tools)
    expect(await numbered(large)).toBe(0)
    await drain()
    expect([await count('delivery', large), await count('notification_event', large)]).toEqual([
      0, 0,
    ])
  })

  it('is left to the pages between blocks when more of it is due than a block releases of one', async () => {
    const { large, small, addWebhooks, register, pay, numbered, notified, tools, drain } =
      await begin()
    await addWebhooks(large, 100)
    const webhook_id = await register(small)
    expect((await pay([1, 7n], [2, 8n])).notifications).toEqual({ count: 1, isMore: true })
    // What is left from one block does not return with the next.
    expect((await pay([2, 9n])).notifications).toEqual({ count: 1, isMore: true })
    expect([await numbered(large), await notified(webhook_id)]).toEqual([0, ['8', '9']])
    await releasePage(tools)
    expect(await numbered(large)).toBe(100)
    await drain()
    expect(await numbered(large)).toBe(100)
  })

  it('leaves other organizations their share of the notifications released after a block', async () => {
    const { large, small, addWebhooks, register, pay, notified, tools, drain } = await begin({
      releaseLimits: { notifications: 10, transfers: 1_000 },
    })
    await addWebhooks(large, 100)
    const webhook_id = await register(small)
    // Few enough to be written with the block, and more than one page.
    await pay([1, 7n])
    await pay([1, 7n], [2, 8n])
    expect(await notified(webhook_id)).toEqual(['8'])
    await pay([1, 7n], [2, 9n])
    await releasePage(tools)
    expect(await notified(webhook_id)).toEqual(['8', '9'])
    await drain()
  })
})

describe('what is expanded after its block', () => {
  const fanOutLimits = { inline: 0, perEvent: 0 }
  const releaseLimits = { notifications: 2, transfers: 100 }

  it('is notified in the order of the chain, whatever was left and whatever is written at once', async () => {
    const setup = await begin({ fanOutLimits, releaseLimits })
    const { large, register, pay, notified, tools, drain } = setup
    const hooks = [await register(large), await register(large), await register(large)]
    await pay([1, 1n])
    await pay([1, 2n])
    // As if it had few webhooks from now on: what follows waits behind what is left.
    tools.fanOutLimits = { inline: 100, perEvent: 4 }
    await pay([1, 3n])
    await releasePage(tools)
    await pay([1, 4n])
    await drain()
    await pay([1, 5n])
    await drain()
    for (const webhook_id of hooks)
      expect(await notified(webhook_id)).toEqual(['1', '2', '3', '4', '5'])
    expect(await setup.count('notification_event', large)).toBe(0)
  })

  it('goes to the webhooks of that time, with their settings of that time', async () => {
    const { large, wallets, register, pay, notified, drain } = await begin({ fanOutLimits })
    const all = await register(large)
    const mine = await register(large, { wallet_id: wallets[0] })
    const gone = await register(large)
    const states = await register(large, { events: ['WEBHOOK_EVENT_TRANSACTION_STATE'] })
    const changed = await register(large)
    await pay([1, 1n])
    const late = await register(large)
    await large.call('RemoveWebhook', { webhook_id: gone })
    const update = async (webhook_id: string, events: string[]) =>
      await large.call('UpdateWebhook', { webhook_id, events })
    await update(changed, ['WEBHOOK_EVENT_TRANSACTION_STATE'])
    await update(states, ['WEBHOOK_EVENT_TRANSFER'])
    await pay([1, 2n])
    await update(changed, ['WEBHOOK_EVENT_TRANSFER'])
    await pay([1, 3n])
    await drain()
    await pay([1, 4n])
    await drain()
    expect(await notified(all)).toEqual(['1', '2', '3', '4'])
    expect(await notified(mine)).toEqual(['1', '2', '3', '4'])
    expect(await notified(gone)).toEqual([])
    expect(await notified(late)).toEqual(['2', '3', '4'])
    expect(await notified(states)).toEqual(['2', '3', '4'])
    expect(await notified(changed)).toEqual(['1', '3', '4'])
  })

  it('waits for the confirmation that the webhook has when it is expanded', async () => {
    const { large, register, pay, store, chain, notified, drain } = await begin({ fanOutLimits })
    const webhook_id = await register(large)
    await pay([1, 1n])
    await large.call('UpdateWebhook', { webhook_id, confirmation: 3 })
    await drain()
    expect(await notified(webhook_id)).toEqual([])
    for (let more = 0; more < 2; more++) {
      chain.mine()
      await store()
    }
    expect(await notified(webhook_id)).toEqual(['1'])
  })

  it('is not notified when its block leaves the chain before, and is when it returns', async () => {
    const setup = await begin({ fanOutLimits, releaseLimits })
    const {
      large,
      chain,
      account,
      register,
      pay,
      storeAll,
      goBack,
      count,
      notified,
      tools,
      drain,
    } = setup
    const hooks = [await register(large), await register(large), await register(large)]
    await pay([1, 1n])
    await drain()
    const { number, hash } = chain.canonical().at(-1)!
    await pay([1, 2n])
    // Some of the webhooks have their notification.
    await releasePage(tools)
    const head = chain.canonical().at(-1)!
    chain.reorganize(2, [[{ movements: [{ to: account(1), value: 3n }] }], [], []])
    await goBack()
    // The event of the removed block is gone; what was sent is retracted later.
    expect(await count('notification_event', large)).toBe(1)
    await storeAll()
    await drain()
    chain.resume({ number: head.number, hash: head.hash })
    chain.mine()
    chain.mine()
    await goBack()
    await storeAll()
    await drain()
    for (const webhook_id of hooks)
      expect(await notified(webhook_id)).toEqual(['1', '-1', '3', '-3', '1', '2'])
    expect(chain.canonical()[number]!.hash).toEqual(hash)
  })
})

describe('large notifications of removed blocks', () => {
  const bodyBytes = 1_000_000
  const mostPerPage = 8
  /** As if the transaction had many transfers. The text is compressed when it is stored, to a hundredth. */
  const enlarge = async ({ organization_id }: Caller) =>
    await pool.query(
      `update delivery set data = data || jsonb_build_object('text', repeat('x', $2))
       where organization_id = $1 and sequence is not null`,
      [organization_id, bodyBytes],
    )
  const said = ['7', '-7', '5']

  it('of one organization are retracted in pages of 8 MB between blocks, those of others with the rollback', async () => {
    const setup = await begin()
    const { large, small, chain, account, register, pay, storeAll, goBack } = setup
    const { count, numbered, notified, tools, drain } = setup
    const hooks: string[] = []
    while (hooks.length < 20) hooks.push(await register(large))
    const webhook_id = await register(small)
    await pay([1, 7n], [2, 8n])
    await drain()
    await enlarge(large)
    const to = (who: number, value: bigint) => ({ to: account(who), value })
    chain.reorganize(1, [[{ movements: [to(1, 5n), to(2, 9n)] }], []])
    expect(await goBack()).toBe(true)
    expect([await numbered(large), await count('notification_event', large)]).toEqual([20, 1])
    expect(await notified(webhook_id)).toEqual(['8', '-8'])
    await storeAll()
    for (let before = 20, pages = 1; before < 40; pages++) {
      // A process that ends within a page leaves what was there before it.
      await pool.query(
        `create function end_page() returns trigger language plpgsql as $$
         begin raise 'ended' using errcode = 'admin_shutdown'; end $$;
         create constraint trigger end_page after insert on delivery_queue deferrable initially deferred
         for each row execute function end_page()`,
      )
      await expect(releasePage(tools)).rejects.toThrow('ended')
      await pool.query('drop function end_page cascade')
      expect(await numbered(large)).toBe(before)
      await releasePage(tools)
      const page = Math.min(40, await numbered(large)) - before
      expect(page).toBeGreaterThan(0)
      expect(page).toBeLessThanOrEqual(mostPerPage)
      before += page
      expect(pages).toBeLessThan(20)
    }
    await drain()
    expect(await count('notification_event', large)).toBe(0)
    for (const hook of hooks) expect(await notified(hook)).toEqual(said)
  })

  it('of several organizations have 8 MB of a page together, and of a rollback', async () => {
    const setup = await begin()
    const { large, small, chain, account, register, pay, storeAll, goBack } = setup
    const { count, numbered, notified, tools, drain } = setup
    const hooks: string[] = []
    while (hooks.length < 14) hooks.push(await register(large), await register(small))
    await pay([1, 7n], [2, 7n])
    await drain()
    await enlarge(large)
    await enlarge(small)
    const to = (who: number, value: bigint) => ({ to: account(who), value })
    chain.reorganize(1, [[{ movements: [to(1, 5n), to(2, 5n)] }], []])
    const all = async () => (await numbered(large)) + (await numbered(small))
    expect(await goBack()).toBe(true)
    // One of them is within the bound, both are not.
    expect(
      [
        await all(),
        await count('notification_event', large),
        await count('notification_event', small),
      ].sort(),
    ).toEqual([0, 1, 21])
    await drain()
    await storeAll()
    await drain()
    for (const hook of hooks) expect(await notified(hook)).toEqual(said)
    tools.fanOutLimits = { inline: 0, perEvent: 0 }
    await enlarge(large)
    await enlarge(small)
    chain.reorganize(2, [[], [], []])
    expect(await goBack()).toBe(true)
    expect(await all()).toBe(42)
    await releasePage(tools)
    const page = (await all()) - 42
    expect(page).toBeGreaterThan(1)
    expect(page).toBeLessThanOrEqual(mostPerPage)
    await drain()
    for (const hook of hooks) expect(await notified(hook)).toEqual([...said, '-5'])
  })
})
