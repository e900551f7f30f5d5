import { SigningKey } from 'ethers'
import { privateKeyToAccount, sign } from 'viem/accounts'
import { beforeAll, describe, expect, it } from 'vitest'
import { createSender, encode } from '../chains/evm/token-contracts.ts'
import { anvilKeys, startSendingBench } from './bench.ts'
import { signWithRawKey, toText } from './raw-key.ts'

const bench = await startSendingBench()
const { anvil, caller, accounts, mine, get, reaches } = bench
const [key, otherKey] = anvilKeys
const [from, friend] = accounts as [string, string]
const { deploy, send } = createSender(anvil)
let wallet_id: string

const messageOf = async (transaction_id: string): Promise<`0x${string}`> =>
  (await caller.call('GetTransactionMessageToSign', { transaction_id })).transaction_message_to_sign
const create = async (fields: object = {}) =>
  (await caller.call('CreateTransaction', { wallet_id, from, to: friend, value: '5', ...fields }))
    .transaction
const submit = (transaction_id: string, signature: string) =>
  caller.call('SubmitTransactionSignature', { transaction_id, signature })
const signed = async (transaction_id: string, by: `0x${string}` = key) => {
  const hash = await messageOf(transaction_id)
  await submit(transaction_id, await sign({ hash, privateKey: by, to: 'hex' }))
}
const sendOne = async (transaction_id: string) =>
  (await caller.call('SendTransaction', { transaction_id })).transaction

beforeAll(async () => {
  const wallet = await caller.call('RegisterWallet', { name: 'w', address: from, confirmation: 3 })
  wallet_id = wallet.wallet_id
})

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
  expect(await sendOne(transaction_id)).toMatchObject({ transaction_state: 'TRANSACTION_STATE_SENT' })
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
