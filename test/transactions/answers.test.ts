import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { freshDatabase } from '../helpers/database.ts'
import { anvilKeys, startSendingBench } from './harness.ts'
import { type Manner, plain, type ScriptedNode, startScriptedNode } from './scripted-node.ts'

const { db } = await freshDatabase()
const nodes: ScriptedNode[] = []
const bench = await startSendingBench(db, {
  upstreams: async (anvil) => {
    nodes.push(await startScriptedNode(anvil), await startScriptedNode(anvil))
    return nodes.map(({ url }) => url)
  },
  broadcastTimeoutMs: 4_000,
})
afterAll(async () => {
  await bench.stop()
  for (const node of nodes) await node.stop()
})
const { anvil, accounts, caller, clock, get, mine, reaches } = bench
const [from] = accounts as [string]
let wallet_id: string

beforeAll(async () => {
  const wallet = await caller.call('RegisterWallet', { name: 'w', address: from, confirmation: 1 })
  wallet_id = wallet.wallet_id
})

const answer = (...manners: Manner[]) => {
  for (const [at, node] of nodes.entries()) node.manner = manners[at % manners.length]!
}

beforeEach(async () => {
  answer(plain)
  await bench.healthy()
})

const prepare = async () => {
  const { transaction } = await caller.call('CreateTransaction', {
    ...{ wallet_id, from, to: from, value: '1', gas: '21000' },
  })
  const { transaction_id } = transaction
  const message = await caller.call('GetTransactionMessageToSign', { transaction_id })
  const signature = await privateKeyToAccount(anvilKeys[0]).sign({
    hash: message.transaction_message_to_sign,
  })
  await caller.call('SubmitTransactionSignature', { transaction_id, signature })
  return transaction_id as string
}
/** The state after SendTransaction, or the reason of its refusal before it. */
const send = async (transaction_id: string): Promise<string> => {
  const reason = await caller.reason('SendTransaction', { transaction_id })
  const { transaction_state } = await get(transaction_id)
  return `${reason} ${transaction_state.replace('TRANSACTION_STATE_', '')}`
}
/** Whatever the answers were, the transaction goes its way once the nodes are themselves again. */
const confirms = async (transaction_id: string) => {
  answer(plain)
  clock.shift(60_000)
  await reaches(transaction_id, 'SENT')
  await mine()
  await reaches(transaction_id, 'CONFIRMED')
}

const says = (message: string): Manner => ({ takes: false, says: { message } })

it.each<[string, string, ...Manner[]]>([
  ['taken', 'OK SENT', plain],
  ['already known', 'OK SENT', { takes: true, says: { message: 'already known' } }],
  ['nonce too low', 'OK SENDING', says('nonce too low: next nonce 9, tx nonce 3')],
  ['a time-out, taken', 'OK SENDING', { takes: true, says: 'nothing' }],
  ['a time-out, not taken', 'OK SENDING', { takes: false, says: 'nothing' }],
  ['502, taken', 'OK SENDING', { takes: true, says: '502' }],
  ['502, not taken', 'OK SENDING', { takes: false, says: '502' }],
  ['a broken connection', 'OK SENDING', { takes: true, says: 'reset' }],
  ['an unknown error text', 'OK SENDING', says('a wholly new reason')],
  ['a full pool', 'OK SENDING', says('txpool is full')],
  ['one refuses, one takes', 'OK SENT', says('insufficient funds'), plain],
  [
    'one refuses, one takes and is silent',
    'OK SENDING',
    says('insufficient funds for gas * price + value'),
    { takes: true, says: 'reset' },
  ],
])('%s: %s, and on the chain in the end', async (_, state, ...manners) => {
  const transaction_id = await prepare()
  answer(...manners)
  expect(await send(transaction_id)).toBe(state)
  expect(await caller.reason('CancelTransaction', { transaction_id })).toBe(
    'TRANSACTION_ALREADY_BROADCAST',
  )
  await confirms(transaction_id)
})

it.each([
  'insufficient funds for gas * price + value',
  'intrinsic gas too low',
  'transaction underpriced',
  'replacement transaction underpriced',
  'invalid chain id for signer',
])('every node says "%s": signed as before, and may be canceled or sent again', async (message) => {
  const transaction_id = await prepare()
  answer(says(message))
  expect(await send(transaction_id)).toBe('TRANSACTION_REFUSED SIGNED')
  expect((await get(transaction_id)).last_error).toBe(message)
  expect(await send(transaction_id)).toBe('TRANSACTION_REFUSED SIGNED')
  answer(plain)
  expect(await send(transaction_id)).toBe('OK SENT')
  await confirms(transaction_id)
})

it('a refusal after a timeout proves nothing: a transaction that a node may hold is kept', async () => {
  const transaction_id = await prepare()
  answer({ takes: false, says: 'reset' })
  expect(await send(transaction_id)).toBe('OK SENDING')
  answer(says('insufficient funds'))
  clock.shift(60_000)
  await expect
    .poll(async () => (await get(transaction_id)).last_error, { timeout: 20_000 })
    .toBe('insufficient funds')
  expect((await get(transaction_id)).transaction_state).toBe('TRANSACTION_STATE_SENDING')
  expect(await caller.reason('CancelTransaction', { transaction_id })).toBe(
    'TRANSACTION_ALREADY_BROADCAST',
  )
  await confirms(transaction_id)
})

it('what a node has forgotten is sent again', async () => {
  const transaction_id = await prepare()
  expect(await send(transaction_id)).toBe('OK SENT')
  const { transaction_hash } = await get(transaction_id)
  await anvil.call('anvil_dropTransaction', [transaction_hash])
  clock.shift(60_000)
  const find = () => anvil.call('eth_getTransactionByHash', [transaction_hash])
  await expect.poll(find, { timeout: 20_000 }).not.toBeNull()
  await mine()
  await reaches(transaction_id, 'CONFIRMED')
})
