import { expect, it, vi } from 'vitest'
import type { Context } from '../context.ts'
import { createAhead } from './ahead.ts'
import { GetBlock } from './blocks.ts'
import type { QuerySource } from './source.ts'
import { GetTransaction, ListTransactions } from './transactions.ts'

const ok = (result: string) => ({ ok: true as const, result })

const open = (answer = async () => ok('null')) => {
  const asked: unknown[] = []
  const query = {
    prefix: 'eth',
    timeoutMs: 1_000,
    read: async (_: unknown, method: string, args: readonly unknown[]) => {
      asked.push([method, ...args])
      return await answer()
    },
    view: { isLinking: () => false, final: () => 0, bestHashAt: () => undefined },
    pool: {
      head: () => undefined,
      status: () => [{}, {}],
      request: async ({ method }: { method: string }) => {
        asked.push(['nodes', method])
        return ok('null')
      },
    },
  } as unknown as QuerySource
  const contextOf = (operation: string, more: Partial<Context> = {}): Context =>
    ({
      ...{ query, service: 'q', operation, clock: { now: () => 0 } },
      principal: { credential_id: 'c', organization_id: 'o', role: 'ROLE_MEMBER' },
      ...more,
    }) as unknown as Context
  return { asked, contextOf, ahead: createAhead() }
}

const hash = `0x${'ab'.repeat(32)}`

it('begins with all reads that the operation begins with', () => {
  const { asked, contextOf, ahead } = open()
  ahead.begin(contextOf('GetBlock'), (context) => GetBlock(context, { block_number: 255 }))
  ahead.begin(contextOf('ListTransactions'), (context) =>
    ListTransactions(context, { transaction_hashes: ['0xAB', '0xcd'] }),
  )
  expect(asked).toEqual([
    ['evm_getBlockByNumber', '0xff', false],
    ['evm_getTransactionByHash', '0xab'],
    ['evm_getTransactionByHash', '0xcd'],
  ])
})

it('has the answer ready before the request is admitted', async () => {
  const { contextOf, ahead } = open()
  const begun = ahead.begin(contextOf('GetBlock'), async () => 'answer')
  expect(await begun?.answer).toBe('answer')
})

it('asks no more before the request is admitted', async () => {
  const { asked, contextOf, ahead } = open()
  const read = [['evm_getTransactionByHash', hash]]
  const begin = () =>
    ahead.begin(contextOf('GetTransaction'), (context) =>
      GetTransaction(context, { transaction_hash: hash }),
    )!
  const begun = begin()
  await vi.waitFor(() => expect(asked).toEqual(read))
  await new Promise(setImmediate)
  expect(asked).toEqual(read)
  begun.admit()
  await expect(begun.answer).rejects.toMatchObject({ reason: 'TRANSACTION_NOT_FOUND' })
  expect(asked).toEqual([...read, ['nodes', 'eth_getTransactionByHash']])
})

it('ends the work of a refused request, without an unhandled rejection', async () => {
  const { asked, contextOf, ahead } = open()
  const begun = ahead.begin(contextOf('GetTransaction'), (context) =>
    GetTransaction(context, { transaction_hash: hash }),
  )!
  const refusal = new Error('refused')
  begun.refuse(refusal)
  await expect(begun.answer).rejects.toBe(refusal)
  expect(asked).toHaveLength(1)
})

it('starts no work for other services, for writes, or without a chain', () => {
  const { asked, contextOf, ahead } = open()
  const operation = async () => asked.push('begun')
  expect(ahead.begin(contextOf('GetTransaction', { service: 'c' }), operation)).toBeUndefined()
  expect(ahead.begin(contextOf('ListPendingTransactions'), operation)).toBeUndefined()
  const { query: _, ...without } = contextOf('GetBlock')
  expect(ahead.begin(without, operation)).toBeUndefined()
  expect(asked).toEqual([])
})

it('starts no work for a caller above its limit', () => {
  const { asked, contextOf, ahead } = open()
  const operation = async () => asked.push('begun')
  const context = contextOf('GetBlock')
  ahead.decided(context.principal, true)
  expect(ahead.begin(context, operation)).toBeDefined()
  ahead.decided(context.principal, false)
  expect(ahead.begin(context, operation)).toBeUndefined()
  const other = { ...context.principal, organization_id: 'p' }
  expect(ahead.begin({ ...context, principal: other }, operation)).toBeDefined()
})
