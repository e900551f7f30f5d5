import { randomUUIDv7 } from 'node:crypto'
import fc from 'fast-check'
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, hasEngine } from '../../../test/helpers/database.ts'
import { findOrganization, insertOrganization } from '../access/organizations.ts'
import type { Database, Db } from '../pg/database.ts'
import { ensureNetwork } from '../tracking/networks.ts'
import { pageOwnedAddresses } from '../wallets/addresses.ts'
import { insertWallet } from '../wallets/wallets.ts'
import { pageMissing } from './missing.ts'
import { pageBalances } from './reconcile.ts'
import { isReopening, lowerPage, reopenAllBalances, reopenPage } from './reopening.ts'
import type { WalkPosition } from './wallet-walk.ts'

const database = await freshDatabase()
const { db, pool } = database
const create_time = new Date('2026-01-01T00:00:00Z')
const organization_id = randomUUIDv7()
const fixed = { head: 9, now: create_time }
let wallets = 0

/** Stores a wallet of a network with an address per number, which has as many balances, all of block 9. */
const makeWallet = async ({ db, pool }: Database, network: string, balances: readonly number[]) => {
  const network_id = await ensureNetwork(db, { chain: 'c', network, create_time })
  if (!(await findOrganization(db, organization_id)))
    await insertOrganization(db, { organization_id, name: 'o', domain: 'o', create_time })
  const wallet_id = randomUUIDv7()
  await insertWallet(db, {
    ...{ wallet_id, organization_id, network_id, name: 'w', confirmation: 1, create_time },
  })
  await pool.query(
    `with numbered as (
       select sha256(int4send($5::int4) || int4send(at::int4)) as address, n
       from unnest($4::int4[]) with ordinality as of_numbers(n, at)),
     added as (
       insert into wallet_address (network_id, address, organization_id, wallet_id, create_time)
       select $3, address, $2, $1, now() from numbered),
     assets as (
       insert into asset (asset_id, network_id, asset_type, contract_address, token_id, create_time)
       select gen_random_uuid(), $3, 'ASSET_TYPE_ERC20', int4send(number), $5, now()
       from generate_series(1, (select max(n) from numbered)) number
       returning asset_id, contract_address)
     insert into balance (wallet_id, organization_id, address, asset_id, asset_type,
       contract_address, balance, as_of_block, create_time, position, update_time)
     select $1, $2, address, asset_id, 'ASSET_TYPE_ERC20', contract_address, 1, 9, now(), 0, now()
     from numbered join assets on contract_address <= int4send(n)`,
    [wallet_id, organization_id, network_id, balances, wallets++],
  )
  return network_id
}

/** Takes pages until one is empty, and says how many each looked at. */
const walk = async (next: () => Promise<number>): Promise<number[]> => {
  const pages: number[] = []
  for (let count = 1; count > 0; pages.push(count)) count = await next()
  return pages
}

/** Takes pages until the last one. */
const collect = async <item>(
  next: (
    after: WalkPosition | undefined,
  ) => Promise<{ items: item[]; last?: WalkPosition | undefined }>,
): Promise<item[][]> => {
  const pages: item[][] = []
  let after: WalkPosition | undefined
  do {
    const { items, last } = await next(after)
    pages.push(items)
    after = last
  } while (after)
  return pages
}

const numbersOf = async (text: string, network_id: number): Promise<number[]> => {
  const { rows } = await pool.query({ text, values: [network_id], rowMode: 'array' })
  return rows.map(([number]) => Number(number))
}

/** Counts work that was made, and balances that were lowered. */
const walked = (network_id: number) =>
  numbersOf(
    `select count(distinct (address, asset_id)) from balance_change where network_id = $1
     union all select count(*) from balance b join wallet w using (wallet_id)
     where w.network_id = $1 and as_of_block = 4`,
    network_id,
  )

const missing = {
  native: { asset_type: 'ASSET_TYPE_C' as const, contract_address: Buffer.alloc(0), token_id: 0n },
  tokens: new Map(),
  round_number: 0,
}

it('a page of balances that are to be read again ends at its bound of addresses, however many have no balance or have many', async () => {
  const network_id = await makeWallet(database, 'many', [...Array(2_500).fill(0), 1_500])
  await reopenAllBalances(db, { network_id, block_number: 9, lower_to: 4 })
  const limits = { network_id, limit: 1_000, most_addresses: 400, ...fixed }
  // A page without a balance is not the end. The address with balances has more of them than a page.
  for (const page of [lowerPage, reopenPage]) {
    const pages = await walk(() => page(db, limits))
    expect(pages.toSorted((a, b) => b - a).slice(0, 2)).toEqual([1_000, 500])
    expect(pages.length).toBeGreaterThanOrEqual(2_501 / 400)
  }
  expect(await walked(network_id)).toEqual([1_500, 1_500])
})

it('a walk whose position an earlier version stored begins again', async () => {
  const network_id = await makeWallet(database, 'earlier', [1, 1, 1])
  await reopenAllBalances(db, { network_id, block_number: 9 })
  const limits = { network_id, limit: 1, most_addresses: 9, ...fixed }
  const set = (text: string) =>
    pool.query(`update balance_reopening set ${text} where network_id = $1`, [network_id])
  const last = `('\\xff'::bytea)`
  await set(`wallet_id = gen_random_uuid(), address = ${last}, asset_id = gen_random_uuid()`)
  expect(await reopenPage(db, limits)).toBe(1)
  // It began again at another gap, and left the column that it does not know.
  await set('wallet_id = null, address = null, asset_id = null')
  expect(await walk(() => reopenPage(db, limits))).toEqual([1, 1, 1, 0])
  expect(await walked(network_id)).toEqual([3, 0])
})

it('every walk passes each balance or address of the network once, in pages of any bounds over any wallets', async () => {
  let runs = 0
  const wallet = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 12 })
  const bound = fc.integer({ min: 1, max: 9 })
  await fc.assert(
    fc.asyncProperty(
      fc.array(wallet, { maxLength: 4 }),
      ...[bound, bound],
      async (balancesOfWallets, limit, most_addresses) => {
        await pool.query('truncate wallet_address, balance')
        const network = `random-${runs++}`
        const network_id = await makeWallet(database, network, [])
        for (const balances of balancesOfWallets) {
          await makeWallet(database, network, balances)
          // Those of another network are left alone.
          await makeWallet(database, `other-${network}`, [1, 2])
        }
        const total = balancesOfWallets.flat().reduce((sum, count) => sum + count, 0)
        await reopenAllBalances(db, { network_id, block_number: 9, lower_to: 4 })
        const bounds = { limit, most_addresses }
        for (const page of [lowerPage, reopenPage]) {
          const pages = await walk(() => page(db, { network_id, ...bounds, ...fixed }))
          expect(Math.max(...pages)).toBeLessThanOrEqual(limit)
        }
        expect(await isReopening(db, network_id)).toBe(false)
        expect(await walked(network_id)).toEqual([total, total])
        const other = await ensureNetwork(db, {
          chain: 'c',
          network: `other-${network}`,
          create_time,
        })
        expect(await walked(other)).toEqual([0, 0])

        const compared = await collect(async (after) => {
          const { balances, last } = await pageBalances(db, network_id, { ...bounds, after })
          return { items: balances, last }
        })
        expect(Math.max(...compared.map((page) => page.length))).toBeLessThanOrEqual(limit)
        const pairs = compared.flat().map((one) => `${one.address.toString('hex')} ${one.asset_id}`)
        expect([pairs.length, new Set(pairs).size]).toEqual([total, total])

        const looked = await collect(async (after) => {
          const { pairs, last } = await pageMissing(db, network_id, {
            ...missing,
            ...bounds,
            after,
          })
          return { items: pairs, last }
        })
        expect(Math.max(...looked.map((page) => page.length))).toBeLessThanOrEqual(limit)
        const addresses = looked.flat().map((one) => one.address.toString('hex'))
        const count = balancesOfWallets.flat().length
        expect([addresses.length, new Set(addresses).size]).toEqual([count, count])
      },
    ),
    { numRuns: 40 },
  )
})

it('work is made once of each balance and of each reading that waits since before the gap, in pages of any bounds', async () => {
  let runs = 0
  const bound = fc.integer({ min: 1, max: 9 })
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 4 }),
      ...[bound, bound],
      async (balances, limit, most_addresses) => {
        await pool.query('truncate wallet_address, balance, balance_pending')
        const network_id = await makeWallet(database, `waiting-${runs++}`, balances)
        // Of some assets a balance only, of others readings only, of others both; and readings of the walk's block.
        await pool.query(
          `insert into balance_pending (wallet_id, address, asset_id, block_number, organization_id, network_id,
             asset_type, contract_address, balance, since_block, due_block)
           select wallet_id, address, asset_id, block_number, organization_id, $1, asset_type, contract_address,
             1, 7, 99
           from balance b, generate_series(7, 9) block_number
           where (hashtext(asset_id::text) >> block_number) % 2 = 0`,
          [network_id],
        )
        await pool.query('delete from balance where hashtext(asset_id::text) % 2 = 0')
        const names = `encode(address, 'hex') || asset_id`
        const { rows: expected } = await pool.query(
          `select ${names} as name from balance
           union select ${names} from balance_pending where block_number < 9 order by 1`,
        )
        await reopenAllBalances(db, { network_id, block_number: 9 })
        const pages = await walk(() =>
          reopenPage(db, { network_id, limit, most_addresses, ...fixed }),
        )
        expect(Math.max(...pages)).toBeLessThanOrEqual(limit)
        const { rows } = await pool.query(
          `select ${names} as name from balance_change where network_id = $1 order by 1`,
          [network_id],
        )
        expect(rows).toEqual(expected)
      },
    ),
    { numRuns: 30 },
  )
})

/** The database while another process removes the first addresses behind each statement. */
const whileRemoving = (network_id: number): Db =>
  db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      await pool.query(
        `delete from wallet_address where (network_id, address) in (
           select network_id, address from wallet_address where network_id = $1
           order by wallet_id, address limit 2)`,
        [network_id],
      )
      return result
    },
  })

it('a page without a balance ends at its own last address, also where addresses are removed meanwhile', async () => {
  await pool.query('truncate wallet_address, balance')
  const network_id = await makeWallet(database, 'removing', [0, 0, 0, 0, 0, 0])
  const bounds = { limit: 9, most_addresses: 2, after: undefined }
  const ends = {
    compared: () => pageBalances(whileRemoving(network_id), network_id, bounds),
    missing: () => pageMissing(whileRemoving(network_id), network_id, { ...missing, ...bounds }),
  }
  for (const end of Object.values(ends)) {
    const { rows } = await pool.query(
      `select wallet_id, address, null as asset_id from wallet_address order by 1, 2 limit 2`,
    )
    expect((await end()).last).toEqual(rows[1])
  }
})

/** How many rows of three tables some work reads. The server includes what a session has not reported yet. */
const countRead = async ({ db }: Database, work: (trx: Db) => Promise<unknown>): Promise<number> =>
  await db.transaction().execute(async (trx) => {
    const soFar = async () => {
      const { rows } = await sql<{ read: string | null }>`
        select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::text as read
        from pg_stat_xact_user_tables where relname in ('balance', 'balance_pending', 'wallet_address')`.execute(
        trx,
      )
      return Number(rows[0]?.read)
    }
    const before = await soFar()
    await work(trx)
    return (await soFar()) - before
  })

const engines = ['embedded', 'system'] as const

// Versions of the server plan them differently.
describe.each(engines)(
  'on the %s server, a page of a walk reads no more than it holds',
  (engine) => {
    let planned: Database
    const networks = { known: 0, new: 0 }
    const middles = new Map<number, { wallet_id: string; address: Buffer; asset_id: string }>()
    const fill = async (network: keyof typeof networks, addresses: number, count: number) => {
      for (let left = count; left > 0; left--)
        networks[network] = await makeWallet(planned, network, Array(addresses).fill(1))
      const network_id = networks[network]
      await reopenAllBalances(planned.db, { network_id, block_number: 9 })
      const { rows } = await planned.pool.query(
        `select b.wallet_id, b.address, b.asset_id from wallet_address t join balance b using (wallet_id, address)
       where t.network_id = $1 order by t.wallet_id, t.address offset $2 limit 1`,
        [network_id, (addresses * count) / 2],
      )
      middles.set(network_id, rows[0])
    }
    const tables = ['wallet', 'wallet_address', 'balance', 'balance_pending', 'asset']

    beforeAll(async () => {
      if (!hasEngine(engine)) return
      planned = await freshDatabase(engine)
      const { pool } = planned
      // The statistics are those that each step leaves.
      for (const table of tables)
        await pool.query(`alter table ${table} set (autovacuum_enabled = false)`)
      // One wallet has nearly all addresses, then a network is added that no statistics have.
      await fill('known', 40_000, 1)
      await pool.query(`analyze ${tables.join()}`)
      await fill('new', 7_000, 3)
    })

    const limits = { limit: 100, most_addresses: 5_000 }
    type Where = { network_id: number; after: WalkPosition | undefined }
    const reads: Record<string, (trx: Db, where: Where) => Promise<unknown>> = {
      lowered: (trx, { network_id }) => lowerPage(trx, { network_id, ...limits, ...fixed }),
      'read again': (trx, { network_id }) => reopenPage(trx, { network_id, ...limits, ...fixed }),
      compared: (trx, { network_id, after }) => pageBalances(trx, network_id, { ...limits, after }),
      missing: (trx, { network_id, after }) =>
        pageMissing(trx, network_id, {
          ...missing,
          ...limits,
          after: after && { ...after, asset_id: null },
        }),
      owned: (trx, { network_id, after }) =>
        pageOwnedAddresses(trx, { organization_id, network_id }, { limit: limits.limit, after }),
    }
    const places = ['first', 'behind a balance', 'behind an address'] as const
    for (const network of ['known', 'new'] as const)
      for (const place of places)
        it.skipIf(!hasEngine(engine)).each(Object.keys(reads))(
          `%s, of a ${network} network, ${place}`,
          async (name) => {
            const network_id = networks[network]
            const middle = middles.get(network_id)!
            const asset_id = place === 'behind an address' ? null : middle.asset_id
            const after = place === 'first' ? undefined : { ...middle, asset_id }
            await planned.pool.query(
              `update balance_reopening set lower_to = $2, wallet_id = null, address = $3, asset_id = $4,
             address_organization_id = $5 where network_id = $1`,
              [
                ...[network_id, name === 'lowered' ? 4 : null, after?.address, after?.asset_id],
                after && organization_id,
              ],
            )
            const read = await countRead(planned, (trx) => reads[name]!(trx, { network_id, after }))
            expect(read).toBeGreaterThanOrEqual(100)
            // A comparison passes the addresses of the other network first: they, and once more their end.
            const passesOther =
              !after && network === 'new' && ['compared', 'missing'].includes(name)
            expect(read).toBeLessThan(passesOther ? 2 * limits.most_addresses + 1 : 1_000)
          },
        )

    // Last, because it changes what the cases above are planned with.
    it.skipIf(!hasEngine(engine))(
      'of an address that has very many assets, of which readings wait too',
      async () => {
        const { db, pool } = planned
        const network_id = await makeWallet(planned, 'crowded', [20_000])
        await reopenAllBalances(db, { network_id, block_number: 9 })
        // Of each second asset one that is as new as the walk, so that it is no work.
        await pool.query(
          `insert into balance_pending (wallet_id, address, asset_id, block_number, organization_id, network_id,
             asset_type, contract_address, balance, since_block, due_block)
           select b.wallet_id, address, asset_id, 8 + row_number() over (order by asset_id) % 2, b.organization_id,
             network_id, asset_type, contract_address, 1, 9, 99
           from balance b join wallet w using (wallet_id) where w.network_id = $1`,
          [network_id],
        )
        const { rows } = await pool.query(
          `select wallet_id, address, asset_id from balance join wallet w using (wallet_id)
           where w.network_id = $1 order by asset_id offset 10000 limit 1`,
          [network_id],
        )
        const after = rows[0]
        const found: Record<string, number[]> = {}
        for (const _ of ['without statistics', 'with them']) {
          for (const name of ['lowered', 'read again', 'compared']) {
            await pool.query(
              `update balance_reopening set lower_to = $2, wallet_id = null, address = $3, asset_id = $4,
                 address_organization_id = $5 where network_id = $1`,
              [
                ...[network_id, name === 'lowered' ? 4 : null, after.address, after.asset_id],
                organization_id,
              ],
            )
            const read = await countRead(planned, (trx) => reads[name]!(trx, { network_id, after }))
            found[name] = [...(found[name] ?? []), read]
          }
          await pool.query(`analyze ${tables.join()}`)
        }
        for (const counts of Object.values(found))
          for (const read of counts) {
            expect(read, JSON.stringify(found)).toBeGreaterThanOrEqual(100)
            expect(read, JSON.stringify(found)).toBeLessThan(1_000)
          }
      },
    )
  },
)
