import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../test/helpers/database.ts'
import { type Caller, createWalletBench } from '../../test/helpers/wallets.ts'
import type { QuotaName } from '../contract/quotas.ts'
import { listQuotaUses, recountUses, setQuota } from '../storage/access/quotas.ts'

const { db, pool } = await freshDatabase()
const bench = await createWalletBench(db, 'c')
const { address, account, chain } = bench
const webhook = { webhook_endpoint: 'https://receiver.invalid', confirmation: 1 }
const most = 5
let addresses = 0
let tokens = 500

/** An organization of which each quota is five, with what the operations need. */
const begin = async (quota_name: QuotaName) => {
  const caller = await bench.createCaller()
  const { organization_id, call } = caller
  const first = address(++addresses)
  const { wallet_id } = await call('RegisterWallet', { name: 'w', address: first })
  const { webhook_id } = await call('RegisterWebhook', webhook)
  const taken = ['QUOTA_WALLETS', 'QUOTA_ADDRESSES', 'QUOTA_WEBHOOKS'].includes(quota_name) ? 1 : 0
  await limit(caller, quota_name, most + taken)
  return { ...caller, organization_id, wallet_id, webhook_id, first, taken }
}
type Setup = Awaited<ReturnType<typeof begin>>

const limit = async ({ organization_id }: Caller, quota_name: QuotaName, quota_limit?: number) =>
  await setQuota(db, { organization_id, quota_name }, { quota_limit, update_time: new Date() })

const uses = async ({ organization_id }: Caller) =>
  Object.fromEntries(
    [...(await listQuotaUses(db, organization_id))].map(([name, { used }]) => [name, used]),
  )

/** What there is, counted. */
const counted = async ({ organization_id }: Caller) => {
  const { rows } = await pool.query(
    `select (select count(*) from wallet where organization_id = $1 and remove_time is null)::int4 as "QUOTA_WALLETS",
       (select count(*) from wallet_address where organization_id = $1)::int4 as "QUOTA_ADDRESSES",
       (select count(*) from webhook where organization_id = $1)::int4 as "QUOTA_WEBHOOKS",
       (select count(*) from webhook_header where organization_id = $1)::int4 as "QUOTA_WEBHOOK_HEADERS",
       (select count(*) from contract where organization_id = $1)::int4 as "QUOTA_CONTRACTS",
       (select count(*) from managed_transaction where organization_id = $1
         and transaction_state <> 'TRANSACTION_STATE_CANCELED')::int4 as "QUOTA_OPEN_TRANSACTIONS"`,
    [organization_id],
  )
  return rows[0] as Record<string, number>
}

const expectExact = async (caller: Caller) => {
  const all = await counted(caller)
  const used = await uses(caller)
  for (const [name, count] of Object.entries(all))
    expect([name, used[name] ?? 0]).toEqual([name, count])
}

const registerContract = async ({ call }: Setup) => {
  const contract = account(++tokens)
  chain.addToken(contract, 'CONTRACT_TYPE_ERC20')
  const contract_address = chain.formatAddress(contract)
  await call('RegisterContract', { contract_address, contract_type: 'CONTRACT_TYPE_ERC20' })
  return async () => void (await call('RemoveContract', { contract_address }))
}

/** Creates one thing of each kind, and says how to remove it. */
const creations: [QuotaName, (setup: Setup, at: number) => Promise<() => Promise<void>>][] = [
  [
    'QUOTA_WALLETS',
    async ({ call }) => {
      const { wallet_id } = await call('RegisterWallet', { name: 'w' })
      return async () => void (await call('RemoveWallet', { wallet_id }))
    },
  ],
  [
    'QUOTA_ADDRESSES',
    async ({ call, wallet_id }) => {
      const request = { wallet_id, address: address(++addresses) }
      await call('RegisterAddress', request)
      return async () => void (await call('RemoveAddress', request))
    },
  ],
  [
    'QUOTA_WEBHOOKS',
    async ({ call }) => {
      const { webhook_id } = await call('RegisterWebhook', webhook)
      return async () => void (await call('RemoveWebhook', { webhook_id }))
    },
  ],
  [
    'QUOTA_WEBHOOK_HEADERS',
    async ({ call, webhook_id }, at) => {
      const header = { webhook_id, header_key: `x-${at}`, header_value: '' }
      const { webhook_header_id } = await call('RegisterWebhookHeader', header)
      return async () => void (await call('RemoveWebhookHeader', { webhook_header_id }))
    },
  ],
  ['QUOTA_CONTRACTS', registerContract],
  [
    'QUOTA_OPEN_TRANSACTIONS',
    async ({ call, wallet_id, first }) => {
      const request = { wallet_id, from: first, to: first, value: '0' }
      const { transaction } = await call('CreateTransaction', request)
      const { transaction_id } = transaction
      return async () => void (await call('CancelTransaction', { transaction_id }))
    },
  ],
]

describe.each(creations)('%s', (quota_name, create) => {
  it('is never exceeded, however many are created at once', async () => {
    const setup = await begin(quota_name)
    const outcomes = await Promise.allSettled(
      Array.from({ length: most + 7 }, (_, at) => create(setup, at)),
    )
    const made = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
    expect(made).toHaveLength(most)
    expect(new Set(refused.map(({ reason }) => reason))).toEqual(new Set(['QUOTA_EXCEEDED']))
    expect(refused[0].message).toContain(
      `${quota_name} of the organization is ${most + setup.taken}`,
    )
    expect(refused[0].extra).toEqual({
      quota_name,
      quota_limit: String(most + setup.taken),
      used: String(most + setup.taken),
    })
    await expectExact(setup)
    // What is removed makes room for another; removed twice it makes no more.
    await made[0]!()
    await made[0]!().catch(() => {})
    await create(setup, 100)
    await expect(create(setup, 101)).rejects.toMatchObject({ reason: 'QUOTA_EXCEEDED' })
    await expectExact(setup)
    await limit(setup, quota_name)
    await create(setup, 102)
  })
})

it('a batch of addresses beyond the quota adds none of them', async () => {
  const setup = await begin('QUOTA_ADDRESSES')
  const batch = Array.from({ length: most + 1 }, () => address(++addresses))
  const { call, reason, wallet_id } = setup
  expect(await reason('BatchRegisterAddresses', { wallet_id, addresses: batch })).toBe(
    'QUOTA_EXCEEDED',
  )
  await expectExact(setup)
  await call('BatchRegisterAddresses', { wallet_id, addresses: batch.slice(1) })
  // Those that the wallet has already count once.
  await call('BatchRegisterAddresses', { wallet_id, addresses: batch.slice(1) })
  expect(await reason('RegisterAddress', { wallet_id, address: batch[0] })).toBe('QUOTA_EXCEEDED')
  // A wallet whose address does not fit is not created either.
  expect(await reason('RegisterWallet', { name: 'w', address: batch[0] })).toBe('QUOTA_EXCEEDED')
  await call('BatchRemoveAddresses', { wallet_id, remove_all: true })
  expect((await uses(setup)).QUOTA_ADDRESSES).toBe(0)
  await expectExact(setup)
})

it('a removed wallet gives back its addresses, webhooks and their headers', async () => {
  const setup = await begin('QUOTA_WALLETS')
  const { call, wallet_id } = setup
  const { webhook_id } = await call('RegisterWebhook', { ...webhook, wallet_id })
  await call('RegisterWebhookHeader', { webhook_id, header_key: 'x', header_value: '' })
  await call('RegisterWebhookHeader', { webhook_id, header_key: 'X', header_value: 'again' })
  await expectExact(setup)
  await call('RemoveWallet', { wallet_id })
  expect(await uses(setup)).toMatchObject({
    QUOTA_WALLETS: 0,
    QUOTA_ADDRESSES: 0,
    QUOTA_WEBHOOKS: 1,
    QUOTA_WEBHOOK_HEADERS: 0,
  })
  await expectExact(setup)
})

it('wallets that are registered and removed at once never wait in a circle and are counted', async () => {
  const setup = await begin('QUOTA_CONTRACTS')
  const { call } = setup
  const round = async () => {
    const at = address(++addresses)
    const { wallet_id } = await call('RegisterWallet', { name: 'w', address: at })
    const { webhook_id } = await call('RegisterWebhook', { ...webhook, wallet_id })
    await call('RegisterWebhookHeader', { webhook_id, header_key: 'x', header_value: '' })
    await Promise.all([
      call('RemoveWallet', { wallet_id }),
      call('RemoveWebhook', { webhook_id }),
      call('RegisterWallet', { name: 'v', address: at }).catch(() => {}),
    ])
  }
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      for (let left = 6; left > 0; left--) await round()
    }),
  )
  await expectExact(setup)
})

it('counters that differ are counted anew, exactly and beside changes', async () => {
  const wrong = await begin('QUOTA_WALLETS')
  const missing = await begin('QUOTA_WALLETS')
  const right = await begin('QUOTA_WALLETS')
  await limit(wrong, 'QUOTA_WALLETS', 1_000)
  await pool.query('update quota_use set used = used + 7 where organization_id = $1', [
    wrong.organization_id,
  ])
  await pool.query('delete from quota_use where organization_id = $1', [missing.organization_id])
  const register = () => wrong.call('RegisterWallet', { name: 'w', address: address(++addresses) })
  const registering = Array.from({ length: 20 }, register)
  expect(await recountUses(db)).toBeGreaterThan(0)
  await Promise.all(registering)
  await recountUses(db)
  for (const caller of [wrong, missing, right]) await expectExact(caller)
  expect(await recountUses(db)).toBe(0)
})
