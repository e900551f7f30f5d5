import { parseTransaction } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { beforeAll, expect, it } from 'vitest'
import { createByteSet } from '../../../lib/bytes.ts'
import { BlockForgedError } from '../../chain.ts'
import { readBlock } from '../codec/header.ts'
import { bytesOf, toQuantity } from '../codec/raw.ts'
import { evmFamily } from '../family.ts'
import { addressOf, type StubTransaction, stubBlock } from '../testing/stub-chain.ts'
import { createBlock } from './block.ts'
import type { ConfirmQuestion, NodeClaimTools } from './node-claims.ts'

const payer = privateKeyToAccount(`0x${'07'.repeat(32)}`)
const from = payer.address.toLowerCase()
const [other, receiver, contract] = [2, 3, 0xc0].map(addressOf) as [string, string, string]
const signal = AbortSignal.timeout(20_000)
const tracking = (...addresses: string[]) => ({
  accounts: createByteSet(addresses.map(bytesOf)),
  contracts: createByteSet([]),
  tokenAccount: () => [],
})

let payment: StubTransaction
beforeAll(async () => {
  const fields = { nonce: 0, gas: 21_000n, value: 9n, to: receiver as `0x${string}`, chainId: 1 }
  const raw = await payer.signTransaction({
    type: 'eip1559',
    ...fields,
    maxFeePerGas: 9n,
    maxPriorityFeePerGas: 1n,
  })
  const { r, s, yParity } = parseTransaction(raw)
  payment = {
    from,
    to: receiver,
    value: 9n,
    transaction: {
      nonce: '0x0',
      chainId: '0x1',
      gas: toQuantity(21_000),
      maxFeePerGas: '0x9',
      maxPriorityFeePerGas: '0x1',
      accessList: [],
      r,
      s,
      yParity: toQuantity(yParity!),
    },
  }
})

const open = (
  transactions: StubTransaction[],
  { internal = [], ...tools }: Partial<NodeClaimTools> & { internal?: Transfer[] } = {},
) => {
  const forged: [number, number][] = []
  const { block, receipts, number } = stubBlock(transactions)
  const read = readBlock(block, { number, rules: { proof: 'root', unproven_types: new Set() } })!
  const made = createBlock({
    block: read,
    receipts,
    internal: { transfers: [internal] },
    native: evmFamily.native,
    claims: {
      verifySenders: true,
      onForged: (...one) => forged.push(one),
      confirm: async (questions) => questions.map(() => true),
      ...tools,
    },
  })
  return { block: made, forged }
}
type Transfer = { from: string; to: string; value: bigint }

it('a payment of its signer passes', async () => {
  const { block } = open([payment])
  const tracked = tracking(receiver)
  expect(block.needsCheck!(tracked)).toBe(true)
  await block.check!(tracked, signal)
  expect(block.needsCheck!(tracked)).toBe(false)
})

it.each([
  ['receiver', () => receiver],
  ['alleged sender', () => other],
])('a false sender is found out where the %s is tracked', async (_, account) => {
  const { block, forged } = open([{ ...payment, from: other }])
  await expect(block.check!(tracking(account()), signal)).rejects.toThrow(BlockForgedError)
  expect(forged).toEqual([[0, 0]])
})

it('a transaction that concerns no tracked address is not checked', () => {
  const { block } = open([{ ...payment, from: other }])
  expect(block.needsCheck!(tracking(addressOf(0xabc)))).toBe(false)
})

it('senders are not recovered where the operator trusts the nodes', () => {
  const { block } = open([{ ...payment, from: other }], { verifySenders: false })
  expect(block.needsCheck!(tracking(receiver))).toBe(false)
})

it('the state is asked whether an account changed by what a trace says', async () => {
  const asked: ConfirmQuestion[] = []
  const internal = [{ from: contract, to: receiver, value: 5n }]
  const confirm = async (questions: readonly ConfirmQuestion[]) => {
    asked.push(...questions)
    return questions.map(() => true)
  }
  const { block } = open([{ ...payment, to: contract }], {
    internal,
    confirm,
    verifySenders: false,
  })
  const tracked = tracking(receiver)
  await block.check!(tracked, signal)
  expect(asked.map(({ account, change }) => [account, change])).toEqual([[bytesOf(receiver), 5n]])
  expect(block.decode(tracked).movements.map(({ detail }) => detail)).toEqual([{ nonce: '0' }])
})

it('the transactions of a block are hashed once for all questions', async () => {
  const asked: ConfirmQuestion[] = []
  const internal = [
    { from: contract, to: receiver, value: 5n },
    { from: contract, to: other, value: 6n },
  ]
  const confirm = async (questions: readonly ConfirmQuestion[]) => {
    asked.push(...questions)
    return questions.map(() => false)
  }
  const { block } = open([{ ...payment, to: contract }], {
    internal,
    confirm,
    verifySenders: false,
  })
  await block.check!(tracking(receiver), signal)
  await block.check!(tracking(other), signal)
  const [one, two] = asked.map(({ hashes }) => hashes())
  expect(one).toHaveLength(1)
  expect(two).toBe(one)
})

it('a change that nothing confirms is decoded as not verified', async () => {
  const internal = [{ from: contract, to: receiver, value: 5n }]
  const confirm = async () => [false]
  const { block } = open([{ ...payment, to: contract }], {
    internal,
    confirm,
    verifySenders: false,
  })
  const tracked = tracking(receiver)
  await block.check!(tracked, signal)
  expect(block.decode(tracked).movements.map(({ detail }) => detail)).toEqual([
    { nonce: '0', verified: false },
  ])
})

it('the change of a sender counts its value and its fee', async () => {
  const asked: (bigint | undefined)[] = []
  const internal = [{ from: contract, to: from, value: 5n }]
  const confirm = async (questions: readonly ConfirmQuestion[]) =>
    questions.map(({ change }) => asked.push(change) > 0)
  const { block } = open([{ ...payment, to: contract }], {
    internal,
    confirm,
    verifySenders: false,
  })
  await block.check!(tracking(from), signal)
  expect(asked).toEqual([5n - 9n - 30_000n * 2n])
})

it('the change of the miner is not known', async () => {
  const miner = addressOf(0xfee)
  const asked: (bigint | undefined)[] = []
  const internal = [{ from: contract, to: miner, value: 5n }]
  const confirm = async (questions: readonly ConfirmQuestion[]) =>
    questions.map(({ change }) => asked.push(change) > 0)
  const { block } = open([{ ...payment, to: contract }], {
    internal,
    confirm,
    verifySenders: false,
  })
  await block.check!(tracking(miner), signal)
  expect(asked).toEqual([undefined])
})
