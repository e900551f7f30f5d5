import { sql } from 'kysely'
import { privateKeyToAccount, sign } from 'viem/accounts'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { type Caller, createWalletBench } from '../../../test/helpers/wallets.ts'
import { OperationError } from '../../contract/errors/errors.ts'

const { db } = await freshDatabase()
const bench = await createWalletBench(db, 'c')
const { sending } = bench.chain
const privateKey = `0x${'31'.repeat(32)}` as const
const from = privateKeyToAccount(privateKey).address.toLowerCase()
const to = `0x${'ee'.repeat(20)}`

type User = Caller & { wallet_id: string }
const register = async (caller: Caller): Promise<User> => {
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: from })
  return { ...caller, wallet_id }
}
const create = async ({ call, wallet_id }: User, fields: object = {}) =>
  (await call('CreateTransaction', { wallet_id, from, to, value: '1', ...fields })).transaction
const signOne = async ({ call }: User, transaction_id: string) => {
  const { transaction_message_to_sign: hash } = await call('GetTransactionMessageToSign', {
    transaction_id,
  })
  const signature = await sign({ hash, privateKey, to: 'hex' })
  await call('SubmitTransactionSignature', { transaction_id, signature })
}
const refusal = async (work: Promise<unknown>): Promise<OperationError> => {
  const error = await work.then(
    () => new Error('was not refused'),
    (reason: unknown) => reason,
  )
  if (error instanceof OperationError) return error
  throw error
}
const stateless = (user: User) =>
  user.call('ListTransactions', { wallet_id: user.wallet_id, page_size: 100 })

describe('an organization without the key of an address', () => {
  it('learns nothing of the nonces and prices of the one that has it', async () => {
    const owner = await register(await bench.createCaller())
    const stranger = await register(await bench.createCaller())
    const nonces: string[] = []
    for (let count = 0; count < 3; count++) {
      const { transaction_id, nonce } = await create(owner, { gas_price: '7000000000' })
      await signOne(owner, transaction_id)
      nonces.push(nonce)
    }
    // As if no other organization had the address: the count of the chain, and nothing about a replacement.
    expect((await create(stranger)).nonce).toBe(nonces[0])
    expect((await create(stranger)).nonce).toBe(nonces[1])
    const explicit = { nonce: Number(nonces[2]) }
    expect((await create(stranger, explicit)).gas_price).toBe('1000000000')
    expect((await create(stranger, { ...explicit, gas_price: '5000000000' })).nonce).toBe(nonces[2])
    // Its own transactions are no secret.
    const again = await refusal(create(stranger, { ...explicit, gas_price: '5000000000' }))
    expect(again.reason).toBe('REPLACEMENT_UNDERPRICED')
    expect(again.message).toContain('5500000000')
  })

  it('respects the nonces of others once it has shown a signature', async () => {
    const owner = await register(await bench.createCaller())
    const partner = await register(await bench.createCaller())
    const first = await create(partner)
    await signOne(partner, first.transaction_id)
    await partner.call('CancelTransaction', { transaction_id: first.transaction_id })
    const mine = await create(owner, { nonce: Number(first.nonce) + 100, gas_price: '9000000000' })
    await signOne(owner, mine.transaction_id)
    const error = await refusal(
      create(partner, { nonce: Number(mine.nonce), gas_price: '1000000000' }),
    )
    expect(error.reason).toBe('REPLACEMENT_UNDERPRICED')
  })
})

it('refuses a transaction_id that was used on another network', async () => {
  const user = await register(await bench.createCaller())
  await create(user, { transaction_id: 'payout-1' })
  const other = await createWalletBench(db, 'c', { network: 'other' })
  const chains = bench.installation.chains!
  bench.installation.chains = other.installation.chains!
  try {
    const moved = await register(user)
    expect((await refusal(create(moved, { transaction_id: 'payout-1' }))).reason).toBe(
      'TRANSACTION_ID_TAKEN',
    )
    expect((await create(moved, { transaction_id: 'payout-2' })).transaction_id).toBe('payout-2')
  } finally {
    bench.installation.chains = chains
  }
})

describe('a new transaction', () => {
  it('is refused with every field that no node would take, and nothing is stored', async () => {
    const user = await register(await bench.createCaller())
    const cases: [object, string[]][] = [
      [{ gas: '20999' }, ['gas']],
      [{ gas: '21003', data: '0x00' }, ['gas']],
      [{ gas: '21015', data: '0x01' }, ['gas']],
      [{ gas: '30000001' }, ['gas']],
      [{ gas: '21000', gas_price: '100000000000000' }, ['gas_price']],
      [{ gas: '20999', gas_price: '100000000000000' }, ['gas', 'gas_price']],
    ]
    for (const [fields, expected] of cases) {
      const error = await refusal(create(user, fields))
      expect([error.reason, ...error.errors.map(({ field }) => field)]).toEqual([
        'INVALID_REQUEST',
        ...expected,
      ])
    }
    expect((await stateless(user)).transactions).toEqual([])
    // The bounds themselves, and a high price whose fee is small.
    await create(user, { gas: '21000' })
    await create(user, { gas: '21004', data: '0x00' })
    await create(user, { gas: '30000000' })
    await create(user, { gas: '21000', gas_price: '40000000000000' })
  })

  it('is refused where the address cannot pay for it, until it can', async () => {
    const user = await register(await bench.createCaller())
    const cost = 5n + 21_000n * 1_000_000_000n
    sending.funds.set(from, cost - 1n)
    const fields = { value: '5', gas: '21000', transaction_id: 'poor' }
    const error = await refusal(create(user, fields))
    expect([error.reason, error.errors[0]?.field]).toEqual(['INSUFFICIENT_FUNDS', 'from'])
    expect(error.message).toContain(String(cost))
    sending.funds.set(from, cost)
    const created = await create(user, fields)
    expect(created.warnings).toEqual([])
    // Enough for each of the two alone, not for both.
    const second = await create(user, { value: '5', gas: '21000' })
    expect(second.warnings).toEqual([
      `The address has ${cost}; this transaction may spend ${cost} and other open transactions of the address ${cost}.`,
    ])
    // A replacement spends instead of the other one.
    sending.funds.set(from, cost * 3n)
    const replacing = { value: '5', gas: '21000', nonce: Number(second.nonce) }
    expect((await create(user, replacing)).warnings).toEqual([])
    sending.funds.delete(from)
    expect(await create(user, fields)).toEqual(created)
  })

  it('is created with a warning where a block may take it later', async () => {
    const user = await register(await bench.createCaller())
    const cheap = await create(user, { gas_price: '0' })
    expect(cheap.warnings).toEqual([
      'gas_price 0 is below the base fee of the newest block, 1: no block takes the transaction before the base fee falls.',
    ])
    const next = await sending.transactionCount(
      Buffer.from(from.slice(2), 'hex'),
      'pending',
      new AbortController().signal,
    )
    const distant = await create(user, { nonce: next + 50 })
    expect(distant.warnings).toEqual([
      `No block takes nonce ${next + 50} before nonce ${next + 1}, which no transaction has.`,
    ])
    const { transaction } = await user.call('GetTransaction', {
      transaction_id: distant.transaction_id,
    })
    expect(transaction).toEqual(distant)
  })
})

it('keeps the nonce of what is confirmed while a reorganization brings the count back', async () => {
  const caller = await bench.createCaller()
  const own = { from: bench.address(77) }
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: own.from })
  const user = { ...caller, wallet_id }
  const first = await create(user, own)
  // Long ago, and the tracker has not seen yet that the block is gone.
  await sql`
    update managed_transaction set transaction_state = 'TRANSACTION_STATE_CONFIRMED',
      update_time = now() - interval '1 day'
    where organization_id = ${user.organization_id}`.execute(db)
  expect((await create(user, own)).nonce).toBe(String(Number(first.nonce) + 1))
})

const registerAt = async (address: string): Promise<User> => {
  const caller = await bench.createCaller()
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address })
  return { ...caller, wallet_id }
}

it('takes the lowest nonce that is free, whatever others are held', async () => {
  const own = { from: bench.address(78) }
  const user = await registerAt(own.from)
  const { nonce: text, transaction_id } = await create(user, own)
  const first = Number(text)
  for (const step of [2, 3, 5, 5, 9])
    await create(user, { ...own, nonce: first + step, gas_price: `${9_000_000_000 + step}` }).catch(
      () => undefined,
    )
  await user.call('CancelTransaction', { transaction_id })
  const next: number[] = []
  for (let count = 0; count < 7; count++) next.push(Number((await create(user, own)).nonce) - first)
  expect(next).toEqual([0, 1, 4, 6, 7, 8, 10])
})

it('is refused where 1,000 of the address are open', async () => {
  const own = { from: bench.address(79) }
  const user = await registerAt(own.from)
  await create(user, own)
  await sql`
    insert into managed_transaction
    select (jsonb_populate_record(t, jsonb_build_object('transaction_id', 'copy-' || number,
      'nonce', t.nonce + number))).*
    from managed_transaction t, generate_series(1, 998) number
    where organization_id = ${user.organization_id}`.execute(db)
  const last = await create(user, own)
  expect((await refusal(create(user, own))).reason).toBe('TOO_MANY_OPEN_TRANSACTIONS')
  await user.call('CancelTransaction', { transaction_id: last.transaction_id })
  expect((await create(user, own)).nonce).toBe(last.nonce)
})

it('lists transactions by state', async () => {
  const user = await register(await bench.createCaller())
  const { wallet_id } = user
  const [one, two, three] = [await create(user), await create(user), await create(user)]
  await signOne(user, two.transaction_id)
  await user.call('CancelTransaction', { transaction_id: three.transaction_id })
  const idsIn = async (state: string, filter: object) =>
    (
      await user.call('ListTransactions', {
        ...filter,
        transaction_state: `TRANSACTION_STATE_${state}`,
      })
    ).transactions.map(({ transaction_id }: { transaction_id: string }) => transaction_id)
  for (const filter of [{ wallet_id }, { address: from }]) {
    expect(await idsIn('CREATED', filter)).toEqual([one.transaction_id])
    expect(await idsIn('SIGNED', filter)).toEqual([two.transaction_id])
    expect(await idsIn('CANCELED', filter)).toEqual([three.transaction_id])
    expect(await idsIn('SENT', filter)).toEqual([])
  }
  expect(
    await user.reason('ListTransactions', { wallet_id, transaction_state: 'TRANSACTION_STATE_X' }),
  ).toBe('INVALID_REQUEST')
})

describe('a list of transactions', () => {
  it('ends a page where their data is too large together, and none is missed or repeated', async () => {
    const user = await register(await bench.createCaller())
    const ids: string[] = []
    for (const kilobytes of [0, 300, 300, 300, 300, 300, 1_200, 300, 0, 0]) {
      const { transaction_id } = await create(user, { nonce: ids.length + 100 })
      await sql`
        update managed_transaction set data = ${Buffer.alloc(kilobytes * 1_024, 7)}
        where transaction_id = ${transaction_id}`.execute(db)
      ids.push(transaction_id)
    }
    const newest = ids.toReversed()
    const pagesOf = async (filter: object, page_size: number) => {
      const pages: string[][] = []
      let page_token: string | undefined
      do {
        const { transactions, pagination } = await user.call('ListTransactions', {
          ...{ ...filter, page_size },
          ...(page_token && { page_token }),
        })
        pages.push(
          transactions.map(({ transaction_id }: { transaction_id: string }) => transaction_id),
        )
        page_token = pagination.next_page_token
      } while (page_token)
      return pages
    }
    const { wallet_id } = user
    const transaction_state = 'TRANSACTION_STATE_CREATED'
    const cut = [newest.slice(0, 4), newest.slice(4, 8), newest.slice(8)]
    for (const filter of [{ wallet_id }, { address: from }, { wallet_id, transaction_state }]) {
      for (const page_size of [1, 2, 3])
        expect((await pagesOf(filter, page_size)).flat()).toEqual(newest)
      for (const page_size of [4, 100]) expect(await pagesOf(filter, page_size)).toEqual(cut)
    }
  })
})
