import { expect, it } from 'vitest'
import type { Principal } from '../context.ts'
import type { QuerySource } from './source.ts'
import { type Announced, createWarming } from './warming.ts'

const principal: Principal = {
  ...{ credential_id: 'c', organization_id: 'o', role: 'ROLE_MEMBER' },
}
const announced = (name: string, request: unknown, service: Announced['service'] = 'q') => ({
  ...{ principal, service, name, request: () => request },
})

const open = () => {
  const asked: unknown[] = []
  const query = {
    read: async (_: Principal, method: string, args: readonly unknown[]) => {
      asked.push([method, ...args])
      throw new Error('nobody looks at what comes of it')
    },
  } as unknown as QuerySource
  return { asked, query, warm: createWarming() }
}

it('begins with the read that the operation begins with', () => {
  const { asked, query, warm } = open()
  warm({ query }, announced('GetBlock', { block_number: 255 }))
  warm({ query }, announced('ListTransactions', { transaction_hashes: ['0xAB', '0xcd'] }))
  warm({ query }, announced('ListLogs', { transaction_hash: '0xAB' }))
  expect(asked).toEqual([
    ['evm_getBlockByNumber', '0xff', false],
    ['evm_getTransactionByHash', '0xab'],
    ['evm_getTransactionByHash', '0xcd'],
    ['evm_getTransactionReceipt', '0xab'],
  ])
})

it('hands each read over to the operation, once: what a node answers need not be kept', async () => {
  const answers = ['first', 'second', 'third']
  const query = {
    read: async () => ({ ok: true as const, result: answers.shift() ?? '' }),
  } as unknown as QuerySource
  const transaction_hashes = ['0xAB', '0xab']
  const source = createWarming()(
    { query },
    announced('ListTransactions', { transaction_hashes }),
  ) as QuerySource
  const read = async () => await source.read(principal, 'evm_getTransactionByHash', ['0xab'])
  expect(answers).toEqual(['third'])
  expect([await read(), await read(), await read()]).toEqual(
    ['first', 'second', 'third'].map((result) => ({ ok: true, result })),
  )
})

it('reads nothing for other services, for what writes, or for a request that is refused', () => {
  const { asked, query, warm } = open()
  warm({ query }, announced('GetTransaction', { transaction_hash: '0xab' }, 'c'))
  warm({ query }, announced('ListPendingTransactions', { from: '0xab' }))
  warm({}, announced('GetBlock', { block_number: 1 }))
  const refused = () => {
    throw new Error('a field is wrong')
  }
  warm({ query }, { ...announced('GetBlock', {}), request: refused })
  expect(asked).toEqual([])
})

it('reads nothing ahead of time for who is over a limit', () => {
  const { asked, query, warm } = open()
  warm.decided(principal, true)
  warm({ query }, announced('GetBlock', { block_number: 1 }))
  warm.decided(principal, false)
  warm({ query }, announced('GetBlock', { block_number: 2 }))
  warm(
    { query },
    {
      ...announced('GetBlock', { block_number: 3 }),
      principal: { ...principal, organization_id: 'p' },
    },
  )
  expect(asked).toEqual([
    ['evm_getBlockByNumber', '0x1', false],
    ['evm_getBlockByNumber', '0x3', false],
  ])
})
