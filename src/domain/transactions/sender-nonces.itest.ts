// What is kept of an address must never differ from its transactions: the lowest free nonce is given out, and none twice.

import '../../../test/helpers/seeded.ts'
import fc from 'fast-check'
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { type Caller, createWalletBench } from '../../../test/helpers/wallets.ts'

const { db } = await freshDatabase()
const bench = await createWalletBench(db, 'c')
let accounts = 0

type User = Caller & { wallet_id: string; from: string }
const register = async (): Promise<User> => {
  const caller = await bench.createCaller()
  const from = bench.address(++accounts)
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: from })
  return { ...caller, wallet_id, from }
}

type Created = { transaction_id: string; nonce: number }
const create = async ({ call, wallet_id, from }: User, fields = {}): Promise<Created> => {
  const request = { wallet_id, from, to: from, value: '0', ...fields }
  const { transaction_id, nonce } = (await call('CreateTransaction', request)).transaction
  return { transaction_id, nonce: Number(nonce) }
}

const lowestFree = (held: ReadonlySet<number>): number => {
  let nonce = 0
  while (held.has(nonce)) nonce++
  return nonce
}

/** How the row that is kept differs from the transactions. */
const findFaults = async ({ organization_id }: User) => {
  const { rows } = await sql`
    select * from (
      select s.*, (select count(*) from managed_transaction m where m.organization_id = s.organization_id
          and transaction_state = 'TRANSACTION_STATE_CREATED') as open,
        (select sum(value + gas * gas_price) from managed_transaction m
          where m.organization_id = s.organization_id
            and transaction_state = 'TRANSACTION_STATE_CREATED') as cost,
        (select count(distinct nonce) from managed_transaction m where m.organization_id = s.organization_id
          and transaction_state = 'TRANSACTION_STATE_CREATED' and nonce < next_nonce and nonce >= base_nonce) as held
      from sender_nonce s where organization_id = ${organization_id}) s
    where open <> open_count or coalesce(cost, 0) <> open_cost
      or held <> greatest(next_nonce - base_nonce, 0)`.execute(db)
  return rows
}

const step = fc.oneof(
  { weight: 5, arbitrary: fc.constant({ kind: 'create' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('ask' as const), nonce: fc.nat(60) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('cancel' as const), at: fc.nat(1_000) }) },
)

it('gives the lowest free nonce after any creations and cancellations', {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 60 }), async (steps) => {
      const user = await register()
      const open: Created[] = []
      let price = 10n ** 9n
      for (const one of steps) {
        const held = new Set(open.map(({ nonce }) => nonce))
        if (one.kind === 'create') {
          const made = await create(user)
          expect(made.nonce).toBe(lowestFree(held))
          open.push(made)
        } else if (one.kind === 'ask') {
          // Dear enough to replace whatever has the nonce.
          price += price / 5n
          open.push(
            await create(user, { nonce: one.nonce, gas: '21000', gas_price: String(price) }),
          )
        } else if (open.length > 0) {
          const [{ transaction_id }] = open.splice(one.at % open.length, 1) as [Created]
          await user.call('CancelTransaction', { transaction_id })
        }
        expect(await findFaults(user)).toEqual([])
      }
    }),
    { numRuns: 4 },
  )
})

it('gives no nonce twice and leaves no gap where creations and cancellations come at once', async () => {
  const user = await register()
  const open: Created[] = []
  const work = async () => {
    for (let count = 0; count < 12; count++) {
      open.push(await create(user))
      const last = count % 3 === 2 ? open.shift() : undefined
      if (last) await user.call('CancelTransaction', { transaction_id: last.transaction_id })
    }
  }
  await Promise.all(Array.from({ length: 6 }, work))
  const nonces = open.map(({ nonce }) => nonce)
  expect(new Set(nonces).size).toBe(nonces.length)
  expect(await findFaults(user)).toEqual([])
  // The gaps are filled first.
  for (let count = 0; count < 10; count++) {
    const next = await create(user)
    expect(next.nonce).toBe(lowestFree(new Set(nonces)))
    nonces.push(next.nonce)
  }
})
