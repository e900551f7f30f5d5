import { randomUUIDv7 } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { rowsRead } from '../../../test/helpers/rows-read.ts'
import { silentLog } from '../../lib/log.ts'
import { insertOrganization } from '../access/organizations.ts'
import { openDatabase } from '../pg/database.ts'
import { insertGap } from '../tracking/gaps.ts'
import { ensureNetwork } from '../tracking/networks.ts'
import { applyDeltas, listDueBalances } from './changes.ts'
import { applyPending } from './pending.ts'

const { connection } = await freshDatabase()
const { db, stop } = openDatabase({ connection, log: silentLog, max: 1 })
afterAll(stop)
const now = new Date('2026-01-01T00:00:00Z')
const none = Buffer.alloc(0)
const many = 2_000
const head = 10_000

let network_id = 0
let asset_id = ''
beforeEach(async () => {
  const network = randomUUIDv7()
  network_id = await ensureNetwork(db, { chain: 's', network, create_time: now })
  asset_id = randomUUIDv7()
  await sql`insert into asset (asset_id, network_id, asset_type, contract_address, token_id, create_time)
    values (${asset_id}, ${network_id}, 'ASSET_TYPE_S', '', 0, ${now})`.execute(db)
})

/** An organization with a wallet and a tracked address. */
const join = async () => {
  const organization_id = randomUUIDv7()
  const [wallet_id, address] = [randomUUIDv7(), Buffer.from(organization_id)]
  const name = organization_id
  await insertOrganization(db, { organization_id, name, domain: name, create_time: now })
  await sql`insert into wallet (wallet_id, organization_id, network_id, name, confirmation, address_count,
      create_time, update_time)
    values (${wallet_id}, ${organization_id}, ${network_id}, 'w', 1, 1, ${now}, ${now})`.execute(db)
  await sql`insert into wallet_address (organization_id, network_id, address, wallet_id, create_time)
    values (${organization_id}, ${network_id}, ${address}, ${wallet_id}, ${now})`.execute(db)
  return { organization_id, wallet_id, address }
}

type Holder = Awaited<ReturnType<typeof join>>

/** Net changes of 1 in so many blocks; those of even blocks were due before a lower confirmation, and wait for a later block. */
const change = async (
  { organization_id, wallet_id, address }: Holder,
  from: number,
  to: number,
) => {
  await sql`
    insert into balance_change (wallet_id, address, asset_id, block_number, organization_id, network_id, due_block, delta)
    select ${wallet_id}, ${address}, ${asset_id}, n, ${organization_id}, ${network_id},
      n + case n % 2 when 0 then 5000 else 0 end, 1
    from generate_series(${from}::int8, ${to}::int8) n`.execute(db)
}

const hold = async ({ organization_id, wallet_id, address }: Holder) => {
  await sql`
    insert into balance (wallet_id, address, asset_id, organization_id, asset_type, contract_address, balance, as_of_block,
      create_time, position, update_time)
    values (${wallet_id}, ${address}, ${asset_id}, ${organization_id}, 'ASSET_TYPE_S', ${none}, 0, 0, ${now}, 0, ${now})`.execute(
    db,
  )
}

const pend = async ({ organization_id, wallet_id }: Holder, count: number) => {
  await sql`
    insert into balance_pending (wallet_id, address, asset_id, block_number, organization_id, network_id, asset_type,
      contract_address, balance, since_block, due_block)
    select ${wallet_id}, int4send(n), ${asset_id}, 5, ${organization_id}, ${network_id}, 'ASSET_TYPE_S', ${none}, 1, 5, 5
    from generate_series(1, ${count}::int4) n`.execute(db)
}

const balanceOf = async ({ wallet_id }: Holder) => {
  const { rows } = await sql<{ balance: bigint; as_of_block: number }>`
    select balance, as_of_block from balance where wallet_id = ${wallet_id}`.execute(db)
  return rows[0]
}

const page = (limit: number) => ({ network_id, head, limit, now })

it('net changes of one balance are added a page at a time, and it is that of a block after each', async () => {
  const holder = await join()
  await hold(holder)
  await change(holder, 1, many)
  const seen: number[] = []
  for (let count = 1; count > 0; ) {
    ;({ count } = await applyDeltas(db, page(300)))
    expect(count).toBeLessThanOrEqual(300)
    const { balance, as_of_block } = (await balanceOf(holder))!
    expect(balance).toBe(BigInt(as_of_block))
    seen.push(as_of_block)
  }
  expect(seen).toEqual([300, 600, 900, 1_200, 1_500, 1_800, 2_000, 2_000])
})

it('a change whose own time has not come is added before one of a later block', async () => {
  const holder = await join()
  await hold(holder)
  await change(holder, 9_000, 9_001)
  expect((await applyDeltas(db, page(10))).count).toBe(2)
  expect(await balanceOf(holder)).toEqual({ balance: 2n, as_of_block: 9_001 })
})

it('net changes of one organization do not keep those of another one waiting', async () => {
  const [large, small] = [await join(), await join()]
  for (const holder of [large, small]) await hold(holder)
  await change(large, 1, many)
  await change(small, head - 3, head - 3)
  await applyDeltas(db, page(10))
  expect(await balanceOf(small)).toEqual({ balance: 1n, as_of_block: head - 3 })
})

it('balances of one organization that are to be read do not keep those of another one waiting', async () => {
  const [large, small] = [await join(), await join()]
  await change(large, 1, many)
  await change(small, head - 3, head - 3)
  const due = await listDueBalances(db, page(10))
  expect(due.map(({ wallet_id }) => wallet_id)).toContain(small.wallet_id)
  expect(due).toHaveLength(6)
})

it('a page of net changes, of readings and of what is to be read reads its own rows only', async () => {
  const [holder, other] = [await join(), await join()]
  await hold(holder)
  await change(holder, 1, many)
  await pend(other, many)
  const readBy = async (table: string, work: () => Promise<unknown>) => {
    expect(await rowsRead(db, table, work)).toBeLessThan(10 * 20)
  }
  await readBy('balance_pending', () => applyPending(db, page(20)))
  await readBy('balance_change', () => listDueBalances(db, page(20)))
  await readBy('balance_change', () => applyDeltas(db, page(20)))
})

it('readings that hold changes of a gap are postponed a page at a time, those of others are shown meanwhile', async () => {
  const [large, small] = [await join(), await join()]
  await pend(large, many)
  await sql`update balance_pending set since_block = 2 where network_id = ${network_id}`.execute(db)
  await insertGap(db, {
    network_id,
    from_block: 3,
    to_block: 4,
    reason: 'unreadable',
    create_time: now,
  })
  const { organization_id, wallet_id, address } = small
  await sql`
    insert into balance_pending (wallet_id, address, asset_id, block_number, organization_id, network_id, asset_type,
      contract_address, balance, since_block, due_block)
    values (${wallet_id}, ${address}, ${asset_id}, 9, ${organization_id}, ${network_id}, 'ASSET_TYPE_S', ${none}, 7, 9, 9)`.execute(
    db,
  )
  const { applied, count } = await applyPending(db, page(20))
  expect(applied.map((reading) => [reading.wallet_id, reading.balance])).toEqual([[wallet_id, 7n]])
  expect(count).toBe(11)
  expect(await balanceOf(small)).toEqual({ balance: 7n, as_of_block: 9 })
})

/** A wallet that asks for more confirmations since a block; what was confirmed before stays so. */
const raise = async ({ wallet_id }: Holder, confirmation: number, confirmed_block: number) => {
  await sql`update wallet set confirmation = ${confirmation}, confirmed_block = ${confirmed_block}
    where wallet_id = ${wallet_id}`.execute(db)
}

/** A reading that waits, of a block and with all changes known since another one. */
const keep = async (
  { organization_id, wallet_id, address }: Holder,
  row: { balance: number; block_number: number; since_block: number; due_block: number },
) => {
  await sql`
    insert into balance_pending (wallet_id, address, asset_id, block_number, organization_id, network_id, asset_type,
      contract_address, balance, since_block, due_block)
    values (${wallet_id}, ${address}, ${asset_id}, ${row.block_number}, ${organization_id}, ${network_id},
      'ASSET_TYPE_S', ${none}, ${row.balance}, ${row.since_block}, ${row.due_block})`.execute(db)
}

const dueBlocksOf = async (table: 'balance_change' | 'balance_pending', { wallet_id }: Holder) => {
  const { rows } = await sql<{ due_block: number }>`
    select due_block from ${sql.table(table)} where wallet_id = ${wallet_id}
    order by block_number`.execute(db)
  return rows.map(({ due_block }) => due_block)
}

it('a reading that is due by fewer confirmations than its wallet has by now is kept until they are there', async () => {
  const holder = await join()
  await hold(holder)
  await sql`update balance set as_of_block = 1000 where wallet_id = ${holder.wallet_id}`.execute(db)
  await keep(holder, { balance: 7, block_number: 1_001, since_block: 1_001, due_block: 1_064 })
  await raise(holder, 200, 1_000)
  expect(await applyPending(db, { ...page(10), head: 1_064 })).toEqual({ applied: [], count: 1 })
  expect(await dueBlocksOf('balance_pending', holder)).toEqual([1_200])
  expect(await balanceOf(holder)).toEqual({ balance: 0n, as_of_block: 1_000 })
  expect((await applyPending(db, { ...page(10), head: 1_200 })).applied).toHaveLength(1)
  expect(await balanceOf(holder)).toEqual({ balance: 7n, as_of_block: 1_001 })
})

it('a reading of a block that was confirmed before a wallet asked for more is shown, and no older one', async () => {
  const holder = await join()
  await hold(holder)
  await sql`update balance set as_of_block = 1000 where wallet_id = ${holder.wallet_id}`.execute(db)
  // Of 7, one came in block 1003, which is not confirmed.
  await keep(holder, { balance: 7, block_number: 1_005, since_block: 1_001, due_block: 1_010 })
  await sql`
    insert into balance_change (wallet_id, address, asset_id, block_number, organization_id, network_id, due_block, delta)
    values (${holder.wallet_id}, ${holder.address}, ${asset_id}, 1003, ${holder.organization_id}, ${network_id},
      1202, 1)`.execute(db)
  await raise(holder, 200, 1_002)
  await applyPending(db, { ...page(10), head: 1_011 })
  expect(await balanceOf(holder)).toEqual({ balance: 6n, as_of_block: 1_002 })
  await applyDeltas(db, { ...page(10), head: 1_202 })
  expect(await balanceOf(holder)).toEqual({ balance: 7n, as_of_block: 1_003 })
})

it('a net change that is due by fewer confirmations than its wallet has by now waits, and passes no reading', async () => {
  const holder = await join()
  await hold(holder)
  await sql`
    insert into balance_change (wallet_id, address, asset_id, block_number, organization_id, network_id, due_block, delta)
    select ${holder.wallet_id}, ${holder.address}, ${asset_id}, n, ${holder.organization_id}, ${network_id}, n + 9, 1
    from generate_series(1001, 1003) n`.execute(db)
  // All changes since block 1002 are known: 10 and the one of 1003.
  await keep(holder, { balance: 11, block_number: 1_005, since_block: 1_002, due_block: 1_201 })
  await raise(holder, 200, 1_001)
  expect(await applyDeltas(db, { ...page(10), head: 1_012 })).toEqual({ count: 1, set_aside: 2 })
  expect(await balanceOf(holder)).toEqual({ balance: 1n, as_of_block: 1_001 })
  expect(await dueBlocksOf('balance_change', holder)).toEqual([1_201, 1_202])
  await applyPending(db, { ...page(10), head: 1_201 })
  expect(await balanceOf(holder)).toEqual({ balance: 10n, as_of_block: 1_002 })
  await applyDeltas(db, { ...page(10), head: 1_202 })
  expect(await balanceOf(holder)).toEqual({ balance: 11n, as_of_block: 1_003 })
})

it('net changes of known balances do not wait behind balances that cannot be read', async () => {
  const { wallet_id, organization_id, address } = await join()
  // So many pairs without a balance, and a failing one, all due before the deposit.
  await sql`
    insert into balance_change (wallet_id, address, asset_id, block_number, organization_id, network_id, due_block, delta)
    select ${wallet_id}, int4send(n), ${asset_id}, n, ${organization_id}, ${network_id}, n,
      case when n % 2 = 0 then 1 end
    from generate_series(1, ${many}::int4) n`.execute(db)
  const holder = { organization_id, wallet_id, address }
  await hold(holder)
  await change(holder, head - 1, head - 1)
  const deposit = { balance: 1n, as_of_block: head - 1 }
  // Without any reading: all nodes are down.
  let rounds = 0
  for (; (await balanceOf(holder))?.balance === 0n && rounds < 20; rounds++)
    await applyDeltas(db, page(200))
  expect(await balanceOf(holder)).toEqual(deposit)
  // Each of them is looked at once.
  await change(holder, head, head)
  await sql`update balance_change set due_block = ${head} where address = ${address}`.execute(db)
  await applyDeltas(db, page(200))
  expect((await balanceOf(holder))?.as_of_block).toBe(head)
  // Entries of the index for rows that were set aside count until the database may remove them.
  expect(await rowsRead(db, 'balance_change', () => applyDeltas(db, page(20)))).toBeLessThan(
    0.75 * many,
  )
  const due = await listDueBalances(db, page(200))
  expect(due.map(({ block_number }) => block_number)).toEqual(
    Array.from({ length: 200 }, (_, at) => at + 1),
  )
})

it('balances that are to be read do not wait behind net changes', async () => {
  const [holder, other] = [await join(), await join()]
  await hold(holder)
  await change(holder, 1, many)
  const { wallet_id, organization_id } = holder
  await sql`
    insert into balance_change (wallet_id, address, asset_id, block_number, organization_id, network_id, due_block)
    values (${wallet_id}, ${other.address}, ${asset_id}, ${head}, ${organization_id}, ${network_id}, ${head})`.execute(
    db,
  )
  const due = await listDueBalances(db, page(10))
  expect(due.map(({ block_number }) => block_number)).toEqual([head])
})

it('a net change that waited for a reading is added to the balance that another reading made', async () => {
  const holder = await join()
  await change(holder, 1_001, 1_001)
  await applyDeltas(db, page(10))
  expect(await listDueBalances(db, page(10))).toHaveLength(1)
  // Before it in the order of what is to be read, which the nodes do not answer.
  await sql`
    insert into balance_change (wallet_id, address, asset_id, block_number, organization_id, network_id, due_block)
    select ${holder.wallet_id}, int4send(n), ${asset_id}, 1, ${holder.organization_id}, ${network_id}, 1
    from generate_series(1, 20) n`.execute(db)
  await keep(holder, { balance: 5, block_number: 1_000, since_block: 1_000, due_block: 1_100 })
  await applyPending(db, page(10))
  expect(await balanceOf(holder)).toEqual({ balance: 5n, as_of_block: 1_000 })
  expect(await applyDeltas(db, page(10))).toEqual({ count: 1, set_aside: 0 })
  expect(await balanceOf(holder)).toEqual({ balance: 6n, as_of_block: 1_001 })
})
