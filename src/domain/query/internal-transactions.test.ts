import { expect, it } from 'vitest'
import type { PoolRequest } from '../../chains/evm/pool/pool-types.ts'
import type { Context } from '../context.ts'
import { ListInternalTransactions } from './internal-transactions.ts'
import type { QuerySource } from './source.ts'

const hash = `0x${'ab'.repeat(32)}`
const blockHash = `0x${'cd'.repeat(32)}`
const number = 100

/** What becomes of one request for a trace. */
type Outcome = 'traced' | 'refused' | 'moved'

/** Two nodes, of which only one traces, and its head is not known to be on the branch. */
const open = (final: number, outcomes: readonly Outcome[], aside = ['archive']) => {
  const asked: { minBlock: number | undefined; avoid: readonly string[] | undefined }[] = []
  let generation = 0
  const query = {
    prefix: 'eth',
    timeoutMs: 1_000,
    kept: { find: () => undefined, keep: () => {} },
    read: async () => ({
      ok: true,
      result: JSON.stringify({ blockHash, blockNumber: `0x${number.toString(16)}` }),
    }),
    view: {
      isLinking: () => false,
      isGone: () => false,
      final: () => final,
      bestHashAt: () => blockHash,
      generation: () => generation,
      aside: () => aside,
      settle: async () => {},
    },
    pool: {
      status: () => [{}, {}],
      can: (needs: string) => needs === 'debug_trace',
      request: async ({ minBlock, avoid }: PoolRequest) => {
        const outcome = outcomes[asked.length]
        asked.push({ minBlock, avoid })
        if (avoid?.includes('archive')) return { failure: 'NO_UPSTREAM' }
        // A block left the chain meanwhile.
        if (outcome === 'moved') generation++
        return outcome === 'refused'
          ? { ok: false, error: { code: -32_000, message: 'state is gone' } }
          : { ok: true, result: '{"type":"CALL","calls":[]}' }
      },
    },
  } as unknown as QuerySource
  const context = {
    ...{ query, service: 'q', operation: 'ListInternalTransactions' },
    clock: { now: () => 0, sleep: async () => {} },
  } as unknown as Context
  const list = async () =>
    await ListInternalTransactions(context, { transaction_hash: hash }).catch(
      ({ reason }: { reason: string }) => reason,
    )
  return { asked, list }
}

it('a node that is behind is asked for the trace of a final block, and not for one of a later block', async () => {
  const final = open(number, ['traced'])
  expect(await final.list()).toEqual({ internal_transactions: [] })
  expect(final.asked).toMatchObject([{ minBlock: number }])
  expect(await open(number - 1, ['traced']).list()).toBe('UPSTREAM_UNAVAILABLE')
})

it('a final block that nodes refuse to trace is not asked for again', async () => {
  const { asked, list } = open(number, ['refused', 'traced'])
  expect(await list()).toBe('TRACES_UNAVAILABLE')
  expect(asked).toHaveLength(1)
})

it.each([
  [['refused', 'moved', 'moved'], 'UPSTREAM_UNAVAILABLE'],
  [['moved', 'refused', 'moved'], 'UPSTREAM_UNAVAILABLE'],
  [['moved', 'moved', 'refused'], 'TRACES_UNAVAILABLE'],
  [['refused', 'refused', 'traced'], 'TRACES_UNAVAILABLE'],
  [['refused', 'moved', 'traced'], { internal_transactions: [] }],
] as const)('of a block that is not final: %j is %j', async (outcomes, answer) => {
  expect(await open(number - 1, outcomes, []).list()).toEqual(answer)
})
