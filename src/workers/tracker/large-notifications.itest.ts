import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches } from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { readBodies } from './notification-bodies.ts'

const database = await freshDatabase()
const { pool } = database
const { startBench, settled, addWebhook, notified } = createTrackedBenches(database)

type Metadata = {
  transfer_metadata: { erc721: { token_uri_omitted?: boolean; token_data: string } }
}
type Shown = { wallet_id: string; value: string; transfer_state: string }

/** A wallet with two addresses and an item with long descriptions, of which a transaction moves any number. */
const begin = async () => {
  const setup = await startBench('c')
  const { bench, caller, start } = setup
  const { chain, account, address } = bench
  const register = async (confirmation: number, ...numbers: number[]): Promise<string> => {
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', confirmation })
    const addresses = numbers.map((number) => address(number))
    await caller.call('BatchRegisterAddresses', { wallet_id, addresses })
    return wallet_id
  }
  chain.addToken(account(77), 'CONTRACT_TYPE_ERC721')
  const contract = { contract_address: address(77), contract_type: 'CONTRACT_TYPE_ERC721' }
  await caller.call('RegisterContract', contract)
  const asset = {
    asset_type: 'ASSET_TYPE_ERC721' as const,
    contract_address: account(77),
    token_id: 1n,
  }
  const movement = (from: number, to: number, value: number, isItem = false) => ({
    ...{ from: account(from), to: account(to), value: BigInt(value) },
    ...(isItem && { asset }),
  })
  const mine = async (...transactions: ReturnType<typeof movement>[][]) => {
    chain.mine(transactions.map((movements) => ({ movements })))
    await settled(bench)
  }
  const describeItem = async (length: number) =>
    await pool.query(
      'update asset set token_data = $2, token_uri = $2 where network_id = $1 and token_id = 1',
      [bench.network_id, 'x'.repeat(length)],
    )
  return { ...setup, register, movement, mine, describeItem, run: start }
}

/** How many records of notifications, their bytes, and whether the rest is left out. */
const sizes = async (webhook_id: string) =>
  (await notified(webhook_id)).map(({ data }) => ({
    records: data.transfers.length,
    isCut: data.transfers_omitted === true,
    bytes: Buffer.byteLength(JSON.stringify(data)),
  }))

/** Lets the numbering of some notifications fail, and counts the attempts. */
const refuse = async (condition: string, errcode: string) => {
  await pool.query(
    `create sequence refused;
     create function refuse() returns trigger language plpgsql as $$
     begin perform nextval('refused'); raise 'refused' using errcode = '${errcode}'; end $$;
     create trigger refuse before update on delivery for each row
       when (new.sequence is not null and ${condition}) execute function refuse()`,
  )
  const count = async () =>
    Number((await pool.query(`select last_value * is_called::int as n from refused`)).rows[0].n)
  const end = async () => await pool.query('drop function refuse cascade; drop sequence refused')
  return { count, end }
}

it('a transaction of any number of transfers is one body of at most 1,000 records and 1 MiB', async () => {
  const { bench, caller, register, movement, mine, describeItem, run } = await begin()
  await register(1, 1)
  await register(1, 2)
  const webhook_id = await addWebhook(bench, caller, 1)
  run()
  await settled(bench)
  await mine([movement(9, 1, 1, true)])
  await describeItem(4_096)
  const many = Array.from({ length: 2_000 }, (_, at) => movement(1, 2, 1, at % 2 === 0))
  await mine(many, many.slice(0, 500))
  // What is beyond a page is released between blocks.
  await expect.poll(async () => (await sizes(webhook_id)).length).toBe(3)
  const [, large, half] = await sizes(webhook_id)
  // Both ends are tracked: one transfer has two records.
  expect(large).toMatchObject({ records: 1_000, isCut: true })
  expect(half).toMatchObject({ records: 1_000, isCut: false })
  for (const { bytes } of [large!, half!]) expect(bytes).toBeLessThan(1_048_576)
  const [, { data }] = await notified(webhook_id)
  expect(data.transfers[0].transfer_metadata.erc721).toMatchObject({
    ...{ token_uri: '', token_uri_omitted: true, token_data: '', token_data_omitted: true },
  })
})

it('a wallet of a large transaction is notified of its own transfers, wherever they are in it', async () => {
  const { bench, caller, register, movement, mine, run } = await begin()
  const wallets = [await register(1, 1), await register(1, 2)]
  const all = await addWebhook(bench, caller, 1)
  const own = await Promise.all(wallets.map(() => addWebhook(bench, caller, 1)))
  for (const [at, webhook_id] of own.entries())
    await pool.query('update webhook set wallet_id = $2 where webhook_id = $1', [
      ...[webhook_id, wallets[at]],
    ])
  run()
  await settled(bench)
  const many = Array.from({ length: 12_000 }, (_, at) => movement(9, 1, at + 1))
  await mine([...many, movement(9, 2, 7)])
  expect(await sizes(all)).toMatchObject([{ records: 1_000, isCut: true }])
  expect(await sizes(own[0]!)).toMatchObject([{ records: 1_000, isCut: true }])
  expect(await sizes(own[1]!)).toMatchObject([{ records: 1, isCut: false }])
  const [{ data }] = await notified(all)
  expect(data.transfers.map(({ value }: Shown) => Number(value))).toEqual(
    many.slice(0, 1_000).map((_, at) => at + 1),
  )
})

it('of the long descriptions in a transaction of many wallets, a statement reads 8 MB', async () => {
  const { bench, register, movement, mine, describeItem, run } = await begin()
  const { network_id, chain } = bench
  const wallets: string[] = []
  while (wallets.length < 12) wallets.push(await register(1, wallets.length + 1))
  run()
  await settled(bench)
  await mine([movement(99, 1, 1, true)])
  await describeItem(4_096)
  // Of some wallets all texts fit into a body.
  const counts = wallets.map((_, at) => (at < 10 ? 1_000 : 100))
  await mine(
    counts.flatMap((count, at) =>
      Array.from({ length: count }, () => movement(99, at + 1, 1, true)),
    ),
  )
  const { number: head } = chain.canonical().at(-1)!
  const { rows } = await pool.query(
    `select organization_id, transaction_hash, block_number from transfer
     where network_id = $1 and block_number = $2 limit 1`,
    [network_id, head],
  )
  const waiting = wallets.map((wallet_id) => ({
    ...{ ...rows[0], transfer_block: head, wallet_id, webhook_history_id: '', webhook_id: '' },
    notification_type: 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED' as const,
    ...{ backfilled: null, pending: null, sink: null },
  }))
  const read: number[] = []
  const counting = database.db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      const texts = (row: { token_uri?: string; token_data?: string }) =>
        (row.token_uri ?? '').length + (row.token_data ?? '').length
      read.push(result.rows.reduce((sum: number, row) => sum + texts(row as object), 0))
      return result
    },
  })
  const due = { network_id, chain, head, limit: 10_000 }
  const shown: [number, boolean, boolean][] = []
  while (shown.length < waiting.length) {
    const page = await counting
      .transaction()
      .execute((trx) => readBodies(trx, due, waiting.slice(shown.length)))
    expect(page.length).toBeGreaterThan(0)
    for (const { data } of page) {
      const { erc721 } = (data.transfers[0] as Metadata).transfer_metadata
      shown.push([
        data.transfers.length,
        erc721.token_uri_omitted === true,
        erc721.token_data !== '',
      ])
    }
  }
  expect(shown).toEqual(counts.map((count) => [count, count > 100, count === 100]))
  // The row that reaches the bound is read too.
  expect(Math.max(...read)).toBeLessThanOrEqual(8_000_000 + 2 * 4_096)
})

it('what a body leaves out is followed up as its wallet confirms it, and retracted with the others', async () => {
  const { bench, caller, register, movement, mine, run } = await begin()
  await register(1, 1)
  await register(3, 2)
  const webhook_id = await addWebhook(bench, caller, 1)
  run()
  await settled(bench)
  const many = Array.from({ length: 1_000 }, () => movement(9, 1, 1))
  await mine([...many, movement(9, 2, 7)])
  await mine()
  await mine()
  await mine()
  const says = async () =>
    (await notified(webhook_id)).map(({ data }) => [
      data.confirmations,
      data.transfers_omitted,
      data.transfers[0].transfer_state,
    ])
  const followed = [
    [1, true, 'TRANSFER_STATE_SUCCESS'],
    [3, true, 'TRANSFER_STATE_SUCCESS'],
  ]
  expect(await says()).toEqual(followed)
  bench.chain.reorganize(4, [[], [], [], [], []])
  await settled(bench)
  expect(await says()).toEqual([...followed, [0, true, 'TRANSFER_STATE_REORGED']])
})

it('a notification that cannot be stored fails alone, and is sent once it can be', async () => {
  const { bench, caller, register, movement, mine, run } = await begin()
  await register(1, 1)
  const [bad, good] = [await addWebhook(bench, caller, 1), await addWebhook(bench, caller, 1)]
  const refused = await refuse(`new.webhook_id = '${bad}'`, '54000')
  run()
  await settled(bench)
  await mine([movement(9, 1, 1)])
  await mine([movement(9, 1, 2)])
  const values = async (webhook_id: string) =>
    (await notified(webhook_id)).flatMap(({ data }) =>
      data.transfers.map(({ value }: Shown) => value),
    )
  await waitFor('the others are notified', async () => (await values(good)).length === 2)
  const { rows: gaps } = await pool.query('select 1 from tracker_gap where network_id = $1', [
    bench.network_id,
  ])
  expect(gaps).toEqual([])
  expect(await values(bad)).toEqual([])
  await refused.end()
  for (let left = 110; left > 0; left--) bench.chain.mine()
  await waitFor('it is sent', async () => (await values(bad)).length === 2)
})

it('notifications that fail because of the database are all tried again at once, and none is postponed', async () => {
  const { bench, caller, register, movement, mine, run } = await begin()
  await register(1, 1)
  const webhooks = [await addWebhook(bench, caller, 1), await addWebhook(bench, caller, 1)]
  const refused = await refuse(`new.webhook_id = '${webhooks[0]}'`, '42501')
  run()
  await settled(bench)
  await mine([movement(9, 1, 1)])
  // With the block, in a page, and each for itself.
  await waitFor('each was tried', async () => (await refused.count()) >= 3)
  await refused.end()
  for (const webhook_id of webhooks)
    await waitFor('it is sent', async () => (await notified(webhook_id)).length === 1)
})

it('notifications that are released one by one keep the order of the chain', async () => {
  const { bench, caller, register, movement, mine, run } = await begin()
  await register(1, 1)
  const [bad, good] = [await addWebhook(bench, caller, 4), await addWebhook(bench, caller, 4)]
  const refused = await refuse(`new.webhook_id = '${bad}'`, '54000')
  run()
  await settled(bench)
  await mine([movement(9, 1, 1)], [movement(9, 1, 2)], [movement(9, 1, 3)])
  await mine([movement(9, 1, 4)])
  // As if the first block had been postponed; what is written last comes last in the index.
  const { rows } = await pool.query(
    `select d.webhook_history_id from delivery d
     join transfer t on t.transaction_hash = d.transaction_hash and t.organization_id = d.organization_id
     where d.webhook_id = $1 and t.value < 4 order by t.value desc`,
    [good],
  )
  expect(rows).toHaveLength(3)
  for (const { webhook_history_id } of rows)
    await pool.query(
      'update delivery set due_block = due_block + 1 where webhook_history_id = $1',
      [webhook_history_id],
    )
  await mine()
  await mine()
  await mine()
  await waitFor('all are sent', async () => (await notified(good)).length === 4)
  expect(await refused.count()).toBeGreaterThan(0)
  await refused.end()
  const values = (await notified(good)).map(({ data }) => data.transfers[0].value)
  expect(values).toEqual(['1', '2', '3', '4'])
})
