import { SigningKey } from 'ethers'
import { privateKeyToAccount, sign } from 'viem/accounts'
import { afterAll, expect, it } from 'vitest'
import { createSender, encode } from '../chains/evm/token-contracts.ts'
import { freshDatabase } from '../helpers/database.ts'
import { anvilKeys, startSendingBench } from './harness.ts'
import { createOwner, refusal } from './owner.ts'
import { signWithRawKey, toText } from './raw-key.ts'

const { db } = await freshDatabase()
const bench = await startSendingBench(db)
afterAll(bench.stop)
const { anvil, clock, caller, accounts, mine, get, reaches } = bench
const [key, otherKey] = anvilKeys
const [from, friend] = accounts as [string, string]
const { deploy, send } = createSender(anvil)
const { wallet_id, messageOf, create, submit, signed, sendOne, whole } = await createOwner(bench)

/** How users sign: with viem, with ethers, with nothing but the curve. */
const signers: Record<string, (hash: `0x${string}`) => Promise<string> | string> = {
  viem: (hash) => privateKeyToAccount(key).sign({ hash }),
  ethers: (hash) => new SigningKey(key).sign(hash).serialized,
  'ethers, compact': (hash) => new SigningKey(key).sign(hash).compactSerialized,
  'a raw key': (hash) => {
    const made = signWithRawKey(hash, key)
    return toText(made, made.parity)
  },
}

it.each(Object.entries(signers))('the whole life, signed with %s', async (_, signer) => {
  const created = await create()
  const { transaction_id } = created
  expect(created).toMatchObject({
    transaction_state: 'TRANSACTION_STATE_CREATED',
    transaction_hash: '',
    gas: '21000',
    data: '0x',
    stuck: false,
    last_error: '',
  })
  await submit(transaction_id, await signer(await messageOf(transaction_id)))
  const ready = await get(transaction_id)
  expect(ready.transaction_state).toBe('TRANSACTION_STATE_SIGNED')
  expect(await sendOne(transaction_id)).toMatchObject({
    transaction_state: 'TRANSACTION_STATE_SENT',
  })
  await mine()
  expect((await get(transaction_id)).transaction_state).toBe('TRANSACTION_STATE_MINED')
  await mine()
  expect((await get(transaction_id)).transaction_state).toBe('TRANSACTION_STATE_MINED')
  await mine()
  const done = await get(transaction_id)
  expect(done).toEqual({ ...ready, transaction_state: 'TRANSACTION_STATE_CONFIRMED' })
  const receipt = await anvil.call<{ status: string }>('eth_getTransactionReceipt', [
    done.transaction_hash,
  ])
  expect(receipt.status).toBe('0x1')
  expect(
    (await caller.call('GetTransaction', { transaction_hash: done.transaction_hash })).transaction,
  ).toEqual(done)
})

it('refuses signatures of others, of other chains, high ones and malformed ones', async () => {
  const { transaction_id } = await create()
  const hash = await messageOf(transaction_id)
  const good = signWithRawKey(hash, key)
  const high = signWithRawKey(hash, key, { high: true })
  const strange = signWithRawKey(hash, otherKey!)
  const bad: Record<string, string> = {
    'another key': toText(strange, strange.parity),
    'another message': await sign({ hash: `0x${'12'.repeat(32)}`, privateKey: key, to: 'hex' }),
    'the wrong parity': toText(good, 1 - good.parity),
    'a high s': toText(high, high.parity),
    'v of another chain': toText(good, 1 * 2 + 35 + good.parity),
    'v of nothing': toText(good, 30),
    'too short': toText(good, 0).slice(0, 100),
    'too long': `0x${'11'.repeat(90)}`,
    'not hex': 'no signature',
    'r of zero': toText({ r: 0n, s: good.s }, good.parity),
    's beyond the curve': toText({ r: good.r, s: (1n << 256n) - 1n }, good.parity),
  }
  for (const [name, signature] of Object.entries(bad)) {
    const error = await refusal(submit(transaction_id, signature))
    expect([error.reason, error.errors[0]?.field], name).toEqual(['INVALID_REQUEST', 'signature'])
  }
  expect((await get(transaction_id)).transaction_state).toBe('TRANSACTION_STATE_CREATED')
  expect(await caller.reason('SendTransaction', { transaction_id })).toBe(
    'TRANSACTION_STATE_INVALID',
  )
  for (const v of [good.parity, 27 + good.parity, 31_337 * 2 + 35 + good.parity])
    await submit(transaction_id, toText(good, v))
  await caller.call('CancelTransaction', { transaction_id })
  await caller.call('CancelTransaction', { transaction_id })
  expect(await caller.reason('SendTransaction', { transaction_id })).toBe(
    'TRANSACTION_STATE_INVALID',
  )
  expect(
    await caller.reason('SubmitTransactionSignature', {
      transaction_id,
      signature: toText(good, good.parity),
    }),
  ).toBe('TRANSACTION_STATE_INVALID')
})

it('gives a hundred transactions at once nonces of their own, and all are confirmed', async () => {
  const first = Number(await anvil.call('eth_getTransactionCount', [from, 'pending']))
  const created = await Promise.all(Array.from({ length: 100 }, () => create({ gas: '21000' })))
  const nonces = created.map(({ nonce }) => Number(nonce)).sort((a, b) => a - b)
  expect(nonces).toEqual(Array.from({ length: 100 }, (_, at) => first + at))
  await Promise.all(
    created.map(async ({ transaction_id }) => {
      await signed(transaction_id)
      await sendOne(transaction_id)
    }),
  )
  await mine(3)
  // More than a block confirms of one organization: the rest follows between blocks.
  for (const { transaction_id } of created) await reaches(transaction_id, 'CONFIRMED')
})

it('fills the nonce of a canceled transaction with the next one, so that those behind it continue', async () => {
  const [first, second] = [await create(), await create()]
  expect(Number(second.nonce)).toBe(Number(first.nonce) + 1)
  await signed(second.transaction_id)
  await sendOne(second.transaction_id)
  await caller.call('CancelTransaction', { transaction_id: first.transaction_id })
  await mine()
  expect((await get(second.transaction_id)).transaction_state).toBe('TRANSACTION_STATE_SENT')
  const filling = await whole()
  expect(filling.nonce).toBe(first.nonce)
  await mine(3)
  for (const { transaction_id } of [filling, second])
    expect((await get(transaction_id)).transaction_state).toBe('TRANSACTION_STATE_CONFIRMED')
})

it('does not let an organization occupy the nonces of an address without its key', async () => {
  const other = await bench.createCaller()
  const theirs = await other.call('RegisterWallet', { name: 'theirs', address: from })
  const theirTransaction = async () =>
    (await other.call('CreateTransaction', { ...theirs, from, to: friend, value: '5' })).transaction
  const blocking = [await theirTransaction(), await theirTransaction()]
  const own = await create()
  expect(own.nonce).toBe(blocking[0].nonce)
  // Nor do they learn what was signed: their next nonce follows from the chain and their own.
  await signed(own.transaction_id)
  expect((await theirTransaction()).nonce).toBe(String(Number(own.nonce) + 2))
  await caller.call('CancelTransaction', { transaction_id: own.transaction_id })
})

it('returns the first transaction for the same transaction_id and refuses another content', async () => {
  const transaction_id = 'invoice-1'
  const first = await create({ transaction_id, data: '0xAB', gas: '30000' })
  expect(await create({ transaction_id, data: '0xab', gas: '30000' })).toEqual(first)
  const many = await Promise.all(
    Array.from({ length: 10 }, () => create({ transaction_id: 'invoice-2' })),
  )
  expect(new Set(many.map(({ nonce }) => nonce)).size).toBe(1)
  const error = await refusal(create({ transaction_id, value: '6', data: '0xab', gas: '30000' }))
  expect(error.reason).toBe('TRANSACTION_ID_TAKEN')
  for (const id of ['invoice-1', 'invoice-2'])
    await caller.call('CancelTransaction', { transaction_id: id })
})

it('replaces what is on its way for a price 10 % higher', async () => {
  const old = await whole({ gas_price: '2000000000' })
  const low = await refusal(create({ nonce: Number(old.nonce), gas_price: '2199999999' }))
  expect([low.reason, low.errors[0]?.detail]).toEqual([
    'REPLACEMENT_UNDERPRICED',
    'Must be at least 2200000000.',
  ])
  const cancel = await refusal(
    caller.call('CancelTransaction', { transaction_id: old.transaction_id }),
  )
  expect(cancel.reason).toBe('TRANSACTION_ALREADY_BROADCAST')
  expect(cancel.message).toContain(`nonce ${old.nonce} and gas_price 2200000000`)
  const other = await create({ nonce: Number(old.nonce), to: from, value: '0' })
  expect(BigInt(other.gas_price)).toBeGreaterThanOrEqual(2_200_000_000n)
  await signed(other.transaction_id)
  const { transaction_hash } = await sendOne(other.transaction_id)
  await mine()
  expect((await get(old.transaction_id)).transaction_state).toBe('TRANSACTION_STATE_SENT')
  await mine(2)
  expect((await get(other.transaction_id)).transaction_state).toBe('TRANSACTION_STATE_CONFIRMED')
  expect(await get(old.transaction_id)).toMatchObject({
    transaction_state: 'TRANSACTION_STATE_REPLACED',
    replaced_by: transaction_hash,
  })
  const used = await refusal(create({ nonce: Number(old.nonce) }))
  expect(used.errors[0]).toMatchObject({ field: 'nonce', reason: 'OUT_OF_RANGE' })
})

it('says which foreign transaction took the nonce, also when it did so long before', async () => {
  const { transaction_id } = await create()
  await signed(transaction_id)
  const foreign = await send({ from, to: friend, value: 1n })
  await mine(10)
  const answer = await sendOne(transaction_id)
  expect(answer).toMatchObject({ transaction_state: 'TRANSACTION_STATE_SENDING' })
  expect(answer.last_error).toMatch(/nonce too low/i)
  expect(await reaches(transaction_id, 'REPLACED')).toMatchObject({ replaced_by: foreign })
})

it('finds a transaction that its owner had sent elsewhere before', async () => {
  const { transaction_id, nonce, gas, gas_price } = await create()
  await signed(transaction_id)
  const raw = await privateKeyToAccount(key).signTransaction({
    type: 'legacy',
    chainId: 31_337,
    nonce: Number(nonce),
    gas: BigInt(gas),
    gasPrice: BigInt(gas_price),
    to: friend as `0x${string}`,
    value: 5n,
  })
  const hash = await anvil.call('eth_sendRawTransaction', [raw])
  await mine(5)
  expect(await sendOne(transaction_id)).toMatchObject({ transaction_hash: hash })
  clock.shift(60_000)
  await reaches(transaction_id, 'CONFIRMED')
})

it('follows a reorganization back and forth, and sends dropped transactions again', async () => {
  const { transaction_id, transaction_hash } = await whole()
  // Anvil forgets what was in a dropped block: only the sender brings it back.
  const isBack = async () =>
    (await anvil.call('eth_getTransactionByHash', [transaction_hash])) !== null
  await mine()
  await reaches(transaction_id, 'MINED')
  await anvil.call('anvil_reorg', [1, []])
  await reaches(transaction_id, 'SENT')
  await expect.poll(isBack, { timeout: 30_000 }).toBe(true)
  await mine(3)
  await reaches(transaction_id, 'CONFIRMED')
  await anvil.call('anvil_reorg', [4, []])
  await reaches(transaction_id, 'SENT')
  await expect.poll(isBack, { timeout: 30_000 }).toBe(true)
  await mine(3)
  await reaches(transaction_id, 'CONFIRMED')
})

it('refuses transactions that would fail, of foreign addresses, or above the size limit', async () => {
  const relay = await deploy('Relay', friend)
  const error = await refusal(create({ to: relay, value: '0', data: encode('fail') }))
  expect([error.reason, error.message]).toEqual([
    'TRANSACTION_WOULD_FAIL',
    'The contract reverts: on purpose.',
  ])
  expect((await refusal(create({ from: friend }))).reason).toBe('ADDRESS_NOT_FOUND')
  const large = await refusal(
    create({
      value: (1n << 256n).toString(),
      gas: (1n << 64n).toString(),
      gas_price: (1n << 256n).toString(),
      data: `0x${'00'.repeat(128 * 1024 + 1)}`,
    }),
  )
  expect(large.errors.map(({ field }) => field)).toEqual(['value', 'gas', 'gas_price', 'data'])
})

it('leaves a transaction signed that the node refuses, and says why', async () => {
  const poor = await refusal(create({ value: (10n ** 30n).toString() }))
  expect([poor.reason, poor.errors[0]?.field]).toEqual(['INSUFFICIENT_FUNDS', 'from'])
  const { transaction_id } = await create({ value: (10n ** 18n).toString() })
  await signed(transaction_id)
  const balance = await anvil.call<string>('eth_getBalance', [from, 'latest'])
  await anvil.call('anvil_setBalance', [from, '0x1'])
  const error = await refusal(caller.call('SendTransaction', { transaction_id }))
  expect(error.reason).toBe('TRANSACTION_REFUSED')
  expect(error.message).toMatch(/insufficient funds/i)
  const { transaction_state, last_error } = await get(transaction_id)
  expect(transaction_state).toBe('TRANSACTION_STATE_SIGNED')
  expect(last_error).toMatch(/insufficient funds/i)
  await anvil.call('anvil_setBalance', [from, balance])
  await caller.call('CancelTransaction', { transaction_id })
})

it('lists transactions newest first, page by page, by wallet and by address', async () => {
  const all: string[] = []
  let page_token = ''
  do {
    const page = await caller.call('ListTransactions', { wallet_id, page_size: 50, page_token })
    all.push(...page.transactions.map((one: { transaction_id: string }) => one.transaction_id))
    page_token = page.pagination.next_page_token
  } while (page_token)
  expect(new Set(all).size).toBe(all.length)
  expect(all.length).toBeGreaterThan(110)
  const [newest] = (await caller.call('ListTransactions', { address: from, page_size: 1 }))
    .transactions
  expect(newest.transaction_id).toBe(all[0])
  expect(await caller.reason('ListTransactions', { address: friend })).toBe('ADDRESS_NOT_FOUND')
  const other = await bench.createCaller()
  expect(await other.reason('GetTransaction', { transaction_id: all[0] })).toBe(
    'TRANSACTION_NOT_FOUND',
  )
})

it('shows what waits for more than 10 minutes as stuck, and continues sending it', async () => {
  const { nonce } = await create()
  const { transaction_id } = await whole({ nonce: Number(nonce) + 1 })
  expect((await get(transaction_id)).stuck).toBe(false)
  clock.shift(10 * 60_000)
  expect(await get(transaction_id)).toMatchObject({
    transaction_state: 'TRANSACTION_STATE_SENT',
    stuck: true,
  })
})
