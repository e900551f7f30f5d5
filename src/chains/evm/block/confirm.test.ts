import { expect, it } from 'vitest'
import { bytesOf } from '../codec/raw.ts'
import { createRpc } from '../pool/rpc.ts'
import { createFakeClock } from '../testing/fake-clock.ts'
import { addressOf, stubChain } from '../testing/stub-chain.ts'
import { createStubPool } from '../testing/stub-pool.ts'
import { createConfirm } from './confirm.ts'
import type { InternalTransfer } from './traces.ts'

const blocks = stubChain([[], [], []])
const account = addressOf(7)
const signal = AbortSignal.timeout(20_000)

type Node = { before?: bigint; after?: bigint }

const open = (nodes: Node[], traced?: InternalTransfer[][]) => {
  const asked: string[] = []
  const pool = createStubPool(
    nodes.map(({ before, after }, index) => ({
      blocks,
      answer: (method, params) => {
        if (method !== 'eth_getBalance') return undefined
        asked.push(`node ${index}`)
        const { blockHash } = params[1] as { blockHash: string }
        const balance = blockHash === blocks[2]!.block.hash ? after : before
        return balance === undefined ? undefined : `0x${balance.toString(16)}`
      },
    })),
  )
  const clock = createFakeClock()
  const confirm = createConfirm({
    rpc: createRpc({ pool, prefix: 'eth' }),
    pool,
    clock: { ...clock, sleep: async () => {} },
    traceElsewhere: async (_, avoid) => (avoid.includes('node 0') ? traced : undefined),
  })
  const question = {
    account: bytesOf(account),
    change: 5n as bigint | undefined,
    internal: 5n,
    block: { number: 2, hash: bytesOf(blocks[2]!.block.hash) },
    parent_hash: bytesOf(blocks[1]!.block.hash),
    tracer: 'node 0',
    hashes: () => [],
  }
  return { confirm, question, asked }
}

it('the difference of the balance at another node confirms a trace', async () => {
  const { confirm, question, asked } = open([{}, { before: 10n, after: 15n }])
  expect(await confirm(question, signal)).toBe(true)
  expect(new Set(asked)).toEqual(new Set(['node 1']))
})

it('another difference does not', async () => {
  const { confirm, question } = open([
    { before: 10n, after: 15n },
    { before: 10n, after: 10n },
  ])
  expect(await confirm(question, signal)).toBe(false)
})

it('a second trace confirms where the states are gone', async () => {
  const transfer = { from: addressOf(1), to: account, value: 5n }
  const { confirm, question } = open([{}, {}], [[transfer]])
  expect(await confirm(question, signal)).toBe(true)
})

it('a second trace that says otherwise does not', async () => {
  const transfer = { from: addressOf(1), to: account, value: 4n }
  const { confirm, question } = open([{}, {}], [[transfer]])
  expect(await confirm(question, signal)).toBe(false)
})

it('an account whose change is not known is confirmed by a second trace only', async () => {
  const transfer = { from: addressOf(1), to: account, value: 5n }
  const { confirm, question, asked } = open([{}, { before: 10n, after: 15n }], [[transfer]])
  expect(await confirm({ ...question, change: undefined }, signal)).toBe(true)
  expect(asked).toEqual([])
})

it('a node that is alone confirms by its own state', async () => {
  const { confirm, question } = open([{ before: 10n, after: 15n }])
  expect(await confirm(question, signal)).toBe(true)
})

it('after a change that nothing confirms, the next blocks do not wait', async () => {
  const { confirm, question, asked } = open([{}, { before: 10n, after: 10n }])
  expect(await confirm(question, signal)).toBe(false)
  const rounds = asked.length
  expect(await confirm(question, signal)).toBe(false)
  expect(asked.length - rounds).toBe(2)
  expect(rounds).toBeGreaterThan(2)
})
