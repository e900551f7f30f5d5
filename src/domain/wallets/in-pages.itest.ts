import { randomBytes } from 'node:crypto'
import { Kysely, PostgresDialect, sql } from 'kysely'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import { applyPending } from '../../storage/balances/pending.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { Tables } from '../../storage/pg/tables.ts'
import { lockCursor } from '../../storage/tracking/blocks.ts'
import { type RemovalRest, removeAddresses } from '../../storage/wallets/removing.ts'

const { db, pool } = await freshDatabase()
const bench = await createWalletBench(db, 'c')
const { network_id } = bench

const newAddress = () => `0x${randomBytes(20).toString('hex')}`

const countOf = async (query: ReturnType<typeof sql>): Promise<number> => {
  const { rows } = await sql<{ count: number }>`select count(*)::int4 as count ${query}`.execute(db)
  return rows[0]!.count
}

const waiting = () =>
  countOf(sql`from pg_locks where locktype = 'advisory' and not granted
    and database = (select oid from pg_database where datname = current_database())`)

/** Takes the cursor as a tracker does. */
const withCursor = <result>(work: (trx: Db) => Promise<result>): Promise<result> =>
  db.transaction().execute(async (trx) => {
    await lockCursor(trx, network_id)
    return await work(trx)
  })

/** What a tracker finds whose block comes while a request waits for the cursor, or holds it. */
async function between<result>(
  requests: () => Promise<unknown>[],
  look: (trx: Db) => Promise<result>,
) {
  const release = Promise.withResolvers<void>()
  const holding = withCursor(() => release.promise)
  await waitFor('the cursor is held', async () => (await countOf(heldLocks)) > 0)
  const running = requests()
  await waitFor('the requests wait', async () => (await waiting()) === running.length)
  const block = withCursor(look)
  await waitFor('the block waits', async () => (await waiting()) === running.length + 1)
  release.resolve()
  await holding
  const found = await block
  await Promise.all(running)
  return found
}
const heldLocks = sql`from pg_locks where locktype = 'advisory' and granted
  and database = (select oid from pg_database where datname = current_database())`

const registerMany = async (count: number) => {
  const caller = await bench.createCaller()
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w' })
  for (let left = count; left > 0; left -= 1_000)
    await caller.call('BatchRegisterAddresses', {
      wallet_id,
      addresses: Array.from({ length: Math.min(left, 1_000) }, newAddress),
    })
  return { ...caller, wallet_id }
}

const addressesOf = (wallet_id: string) =>
  countOf(sql`from wallet_address where wallet_id = ${wallet_id}`)

const used = async (organization_id: string) => {
  const { rows } = await sql<{ quota_name: string; used: number }>`
    select quota_name, used from quota_use
    where organization_id = ${organization_id} order by quota_name`.execute(db)
  return Object.fromEntries(rows.map((row) => [row.quota_name, row.used]))
}

it('a block does not wait for the whole removal of a large wallet', async () => {
  const { call, wallet_id, organization_id } = await registerMany(2_500)
  const hook = { wallet_id, webhook_endpoint: 'https://receiver.invalid/', confirmation: 1 }
  for (let count = 0; count < 60; count++) await call('RegisterWebhook', hook)
  const left = await between(
    () => [call('RemoveWallet', { wallet_id })],
    () => addressesOf(wallet_id),
  )
  expect(left).toBe(1_500)
  expect(await addressesOf(wallet_id)).toBe(0)
  expect(await countOf(sql`from webhook where wallet_id = ${wallet_id}`)).toBe(0)
  expect(await used(organization_id)).toMatchObject({
    ...{ QUOTA_ADDRESSES: 0, QUOTA_WALLETS: 0, QUOTA_WEBHOOKS: 0 },
  })
})

it('a block does not wait for the removal of all addresses, and only one request waits before it', async () => {
  const one = await registerMany(2_500)
  const other = await registerMany(1_500)
  const remove = ({ call, wallet_id }: typeof one) =>
    call('BatchRemoveAddresses', { wallet_id, remove_all: true })
  const left = await between(
    () => [remove(one), remove(other)],
    async () => (await addressesOf(one.wallet_id)) + (await addressesOf(other.wallet_id)),
  )
  expect(left).toBe(3_000)
  for (const { wallet_id, organization_id } of [one, other]) {
    expect(await addressesOf(wallet_id)).toBe(0)
    expect(await used(organization_id)).toMatchObject({ QUOTA_ADDRESSES: 0, QUOTA_WALLETS: 1 })
  }
})

/** Stores as many balances at an address as asked for, work on each, and one import. */
const fillAddress = async (wallet_id: string, address: Buffer | string, count: number) => {
  const text = typeof address === 'string' ? address.slice(2) : address.toString('hex')
  const rows = sql`
    select wallet_id, address, md5(n::text)::uuid as asset_id, organization_id
    from wallet_address, generate_series(1, ${count}::int4) n
    where wallet_id = ${wallet_id} and address = decode(${text}, 'hex')`
  await sql`
    insert into balance (wallet_id, address, asset_id, organization_id, asset_type, contract_address, balance,
      as_of_block, create_time, position, update_time)
    select r.*, 'ASSET_TYPE_ERC20', '\\x01', 0, 0, now(), 0, now() from (${rows}) r`.execute(db)
  await sql`
    insert into balance_pending (wallet_id, address, asset_id, organization_id, network_id, block_number,
      asset_type, contract_address, balance, since_block, due_block)
    select r.*, ${network_id}, 1, 'ASSET_TYPE_ERC20', '\\x01', 0, 1, 99 from (${rows}) r`.execute(
    db,
  )
  await sql`
    insert into balance_change (wallet_id, address, asset_id, organization_id, network_id, block_number, due_block)
    select r.*, ${network_id}, 1, 99 from (${rows}) r`.execute(db)
}

const rowsOf = async (wallet_id: string) => {
  const tables = ['balance', 'balance_pending', 'balance_change', 'wallet_address']
  return await Promise.all(
    tables.map((table) => countOf(sql`from ${sql.table(table)} where wallet_id = ${wallet_id}`)),
  )
}

it('a block does not wait for all balances of an address that is removed', async () => {
  const { call, organization_id } = await bench.createCaller()
  const address = newAddress()
  const { wallet_id } = await call('RegisterWallet', { name: 'w', address })
  await fillAddress(wallet_id, address, 2_500)
  const remove = () => call('RemoveAddress', { wallet_id, address })
  const left = await between(
    () => [remove()],
    async () => {
      // What the block adds, behind what is removed already.
      await sql`
        insert into balance_change (wallet_id, address, asset_id, organization_id, network_id, block_number, due_block)
        select wallet_id, address, md5(n::text)::uuid, organization_id, ${network_id}, 2, 99
        from wallet_address, generate_series(1, 100) n where wallet_id = ${wallet_id}`.execute(db)
      return await rowsOf(wallet_id)
    },
  )
  // The address stays until nothing of it is left, so that a call that breaks off can be repeated.
  expect(left).toEqual([1_500, 2_500, 2_600, 1])
  expect(await rowsOf(wallet_id)).toEqual([0, 0, 0, 0])
  expect(await used(organization_id)).toMatchObject({ QUOTA_ADDRESSES: 0 })
})

it.each(['RemoveWallet', 'BatchRemoveAddresses'])(
  'a page of %s has a bounded number of balances of many addresses',
  async (operation) => {
    const { call, organization_id } = await bench.createCaller()
    const { wallet_id } = await call('RegisterWallet', { name: 'w' })
    const addresses = Array.from({ length: 30 }, newAddress)
    await call('BatchRegisterAddresses', { wallet_id, addresses })
    for (const [at, address] of addresses.entries())
      await fillAddress(wallet_id, address, at === 20 ? 1_300 : 120)
    const request = operation === 'RemoveWallet' ? { wallet_id } : { wallet_id, addresses }
    const before = await rowsOf(wallet_id)
    const [balances, pending, changes, left] = await between(
      () => [call(operation, request)],
      () => rowsOf(wallet_id),
    )
    expect(before[0]! - balances!).toBe(1_000)
    expect(before[1]! - pending!).toBeLessThanOrEqual(1_000)
    expect(before[2]! - changes!).toBeLessThanOrEqual(1_000)
    expect(left).toBeLessThanOrEqual(30)
    expect(await rowsOf(wallet_id)).toEqual([0, 0, 0, 0])
    expect(await used(organization_id)).toMatchObject({ QUOTA_ADDRESSES: 0 })
  },
)

it('a repeated removal does the rest of one that broke off, and others keep what is theirs', async () => {
  const { call, organization_id } = await bench.createCaller()
  const [address, other] = [newAddress(), newAddress()]
  const { wallet_id } = await call('RegisterWallet', { name: 'w', address })
  await call('RegisterAddress', { wallet_id, address: other })
  for (const one of [address, other]) await fillAddress(wallet_id, one, 1_500)
  const addresses = [Buffer.from(address.slice(2), 'hex')]
  const page = { wallet_id, addresses, rest: undefined, limit: 1_000 }
  await withCursor((trx) => removeAddresses(trx, { organization_id, network_id }, page))
  expect(await rowsOf(wallet_id)).toEqual([2_000, 3_000, 3_000, 2])
  expect((await call('GetWallet', { address })).wallet.address_count).toBe(2)
  for (let times = 0; times < 2; times++) await call('RemoveAddress', { wallet_id, address })
  expect(await rowsOf(wallet_id)).toEqual([1_500, 1_500, 1_500, 1])
  expect(await used(organization_id)).toMatchObject({ QUOTA_ADDRESSES: 1 })
})

it('a removal ends although more rows come between two pages than a page removes', async () => {
  const { call, organization_id } = await bench.createCaller()
  const address = newAddress()
  const { wallet_id } = await call('RegisterWallet', { name: 'w', address })
  const addresses = [Buffer.from(address.slice(2), 'hex')]
  let rest: RemovalRest | undefined
  let pages = 0
  do {
    const added = await sql`
      insert into balance (wallet_id, address, asset_id, organization_id, asset_type, contract_address, balance,
        as_of_block, create_time, position, update_time)
      select wallet_id, address, gen_random_uuid(), organization_id, 'ASSET_TYPE_ERC20', '\\x01', 0, 0, now(), 0, now()
      from wallet_address, generate_series(1, 150) where wallet_id = ${wallet_id}`.execute(db)
    expect(added.numAffectedRows).toBe(150n)
    const page = { wallet_id, addresses, rest, limit: 100 }
    ;({ rest } = await withCursor((trx) =>
      removeAddresses(trx, { organization_id, network_id }, page),
    ))
    expect(++pages).toBeLessThan(50)
  } while (rest)
  expect(await rowsOf(wallet_id)).toEqual([0, 0, 0, 0])
})

it('a change of the confirmation moves any amount of balance work, in pages', async () => {
  const { call, wallet_id, organization_id } = await registerMany(1)
  // Two assets at each of 625 addresses, with two blocks each, some of them due already.
  await sql`
    insert into balance_change (wallet_id, address, asset_id, block_number, organization_id, network_id, due_block)
    select ${wallet_id}::uuid, int4send(n / 4), md5((n / 2 % 2)::text)::uuid, n, ${organization_id}::uuid,
      ${network_id}, case when n < 100 then 0 else n + 9 end
    from generate_series(0, 2499) n`.execute(db)
  await sql`
    insert into balance_pending (wallet_id, address, asset_id, block_number, organization_id, network_id,
      asset_type, contract_address, balance, since_block, due_block)
    select ${wallet_id}::uuid, int4send(n), md5('')::uuid, n, ${organization_id}::uuid, ${network_id},
      'ASSET_TYPE_C', '', 0, n, n + 9
    from generate_series(0, 2499) n`.execute(db)
  const moved = (table: string) =>
    countOf(sql`from ${sql.table(table)}
      where wallet_id = ${wallet_id} and due_block = block_number + 2`)
  const first = await between(
    () => [call('UpdateConfirmation', { wallet_id, confirmation: 3 })],
    () => moved('balance_change'),
  )
  // The first page has 1,000 changes, however many one balance has. Those that are due already stay.
  expect(first).toBe(900)
  expect(await moved('balance_change')).toBe(2_400)
  expect(await moved('balance_pending')).toBe(2_500)
})

it('a change of the confirmation looks once at what may wait, and changes pages only of what there is', async () => {
  const texts: string[] = []
  const watched = new Kysely<Tables>({
    dialect: new PostgresDialect({ pool }),
    log: ({ query }) => void texts.push(query.sql),
  })
  const { createCaller } = await createWalletBench(watched, 'c', { network: 'other' })
  const { call } = await createCaller()
  const { wallet_id } = await call('RegisterWallet', { name: 'w' })
  const tablesOf = async (confirmation: number) => {
    texts.splice(0)
    await call('UpdateConfirmation', { wallet_id, confirmation })
    return texts
      .map((text) => text.match(/balance_\w+|delivery|managed_transaction/g) ?? [])
      .filter((names) => names.length > 0)
      .map((names) => [...new Set(names)].join(' '))
  }
  const looked = 'balance_change balance_pending delivery managed_transaction'
  expect(await tablesOf(2)).toEqual(['balance_backlog', looked])
  // The turn of the request and the cursor are taken together.
  expect(texts.filter((text) => text.includes('pg_advisory_xact_lock'))).toHaveLength(1)
  await sql`
    insert into balance_change (wallet_id, address, asset_id, block_number, organization_id, network_id, due_block)
    select wallet_id, '\\x00', md5('')::uuid, 5, organization_id, network_id, 6
    from wallet where wallet_id = ${wallet_id}`.execute(db)
  expect(await tablesOf(3)).toEqual(['balance_backlog', looked, 'balance_change'])
  expect(
    await countOf(sql`from balance_change where wallet_id = ${wallet_id} and due_block = 7`),
  ).toBe(1)
})

it('a block between the pages of a higher confirmation shows no balance before its time, and loses none', async () => {
  const { call, wallet_id } = await registerMany(1_500)
  await sql`delete from balance_pending where network_id = ${network_id}`.execute(db)
  await sql`
    update wallet set confirmation = 64 where wallet_id = ${wallet_id}`.execute(db)
  await sql`
    insert into balance (wallet_id, address, asset_id, organization_id, asset_type, contract_address, balance,
      as_of_block, create_time, position, update_time)
    select wallet_id, address, md5('')::uuid, organization_id, 'ASSET_TYPE_C', '', 0, 1000, now(), 0, now()
    from wallet_address where wallet_id = ${wallet_id}`.execute(db)
  await sql`
    insert into balance_pending (wallet_id, address, asset_id, block_number, organization_id, network_id,
      asset_type, contract_address, balance, since_block, due_block)
    select wallet_id, address, md5('')::uuid, 1001, organization_id, network_id, 'ASSET_TYPE_C', '', 7, 1001, 1064
    from wallet_address where wallet_id = ${wallet_id}`.execute(db)
  const moveTo = async (trx: Db, head: number) => {
    await sql`
      insert into tracker_cursor (network_id, name, block_number, block_hash, update_time)
      values (${network_id}, 'tracker', ${head}, '', now())
      on conflict (network_id, name) do update set block_number = excluded.block_number`.execute(
      trx,
    )
    return (await applyPending(trx, { network_id, head, limit: 2_000, now: new Date() })).applied
  }
  const shown = (as_of_block: number) =>
    countOf(sql`from balance where wallet_id = ${wallet_id} and balance = ${as_of_block === 1001 ? 7 : 0}
      and as_of_block = ${as_of_block}`)
  expect(await moveTo(db, 1_063)).toEqual([])
  const applied = await between(
    () => [call('UpdateConfirmation', { wallet_id, confirmation: 200 })],
    (trx) => moveTo(trx, 1_064),
  )
  expect(applied).toEqual([])
  expect(await moveTo(db, 1_199)).toEqual([])
  expect(await shown(1_000)).toBe(1_500)
  expect(await moveTo(db, 1_200)).toHaveLength(1_500)
  expect(await shown(1_001)).toBe(1_500)
})
