import { describe, expect, it } from 'vitest'
import { rpcMethods } from '../../contract/operations/gateway.ts'
import { createMethods } from './methods.ts'

const { find, list } = createMethods({ prefix: 'eth', allowed: ['eth_chainId', 'evm_getProof'] })

const address = `0x${'aB'.repeat(20)}`
const hash = `0x${'Cd'.repeat(32)}`
const good: Record<string, unknown[]> = {
  address: [address, `0x${'0'.repeat(40)}`],
  block: ['0x0', '0x10', '0xaF', 'latest', 'earliest', 'pending', 'safe', 'finalized'],
  quantity: ['0x0', '0x1', `0x${'f'.repeat(64)}`],
  hash: [hash],
  data: ['0x', '0x00', '0xaB12'],
  boolean: [true, false],
  call: [
    {},
    { to: address, data: '0x' },
    { from: address, to: address, gas: '0x1', gasPrice: '0x0', value: '0xff', data: '0x1234' },
    { to: null, input: '0x12', type: '0x2', accessList: [], maxFeePerGas: '0x1' },
  ],
  filter: [
    {},
    { address },
    { address: [address, address], topics: [] },
    { fromBlock: '0x1', toBlock: 'latest', topics: [null, hash, [hash, null], []] },
    { blockhash: hash },
    { blockHash: hash, topics: [[hash, hash]] },
    { fromBlock: '0x5', toBlock: '0x5' },
    // Nodes say what is wrong with these.
    { fromBlock: '0x6', toBlock: '0x5' },
    { blockHash: hash, toBlock: 'latest' },
  ],
  filterId: ['0x1'],
  subscription: ['newHeads'],
  options: [{}, true, { includeTransactions: true }],
  overrides: [{}, { [address]: { balance: '0x1' } }],
}
const badQuantities = [
  '0x',
  '0x01',
  '0x00',
  '1',
  1,
  '0xg',
  ' 0x1',
  '0X1',
  '',
  null,
  `0x${'f'.repeat(65)}`,
]
const bad: Record<string, unknown[]> = {
  address: [
    '0x',
    `0x${'a'.repeat(39)}`,
    `0x${'a'.repeat(41)}`,
    'a'.repeat(40),
    5,
    {},
    null,
    [address],
  ],
  overrides: [[], 'x', 5],
  block: [...badQuantities, 'newest', 'Latest', [], true],
  quantity: badQuantities,
  hash: [`0x${'a'.repeat(63)}`, `0x${'a'.repeat(65)}`, '0x', 1, null],
  data: ['0x1', '0x123', '12', '0xzz', null, 1],
  boolean: ['true', 0, 1, null, 'false'],
  call: [
    [],
    'x',
    null,
    { to: '0x1' },
    { gas: '0x01' },
    { gas: 5 },
    { value: '1' },
    { data: '0x1' },
    { from: [address] },
    { gasPrice: '' },
  ],
  filter: [
    [],
    'x',
    null,
    { address: '0x1' },
    { address: [address, 5] },
    { address: Array(1001).fill(address) },
    { adress: address },
    { fromBlock: 1 },
    { fromBlock: '0x01' },
    { toBlock: 'newest' },
    { blockhash: hash, blockHash: hash },
    { blockhash: '0x12' },
    { topics: 'x' },
    { topics: [null, null, null, null, null] },
    { topics: [Array(1001).fill(hash)] },
    { topics: ['0x12'] },
    { topics: [[[hash]]] },
  ],
}

const sample = (type: string) => good[type]?.[0]
const problemOf = (name: string, args: unknown[]) => {
  const refusal = find(name)?.check?.(args, JSON.stringify(args))
  return refusal && JSON.parse(refusal.error)
}

describe.each(rpcMethods.filter(({ transport }) => transport === 'http'))('$name', (method) => {
  const { name, params } = method
  const args = params.map(({ type }) => sample(type))

  it('takes good parameters, with the neutral prefix and the chain’s own', () => {
    expect(problemOf(name, args)).toBeUndefined()
    expect(find(name.replace('evm_', 'eth_'))).toBe(find(name))
    for (const [index, { type }] of params.entries())
      for (const value of good[type] ?? []) {
        if (name.includes('ByNumber') && !good.block!.includes(value) && type === 'block') continue
        expect(problemOf(name, args.with(index, value)), JSON.stringify(value)).toBeUndefined()
      }
  })

  it('refuses bad ones and names them', () => {
    for (const [index, { type, name: parameter, optional }] of params.entries())
      for (const value of bad[type] ?? []) {
        if (value === null && optional) continue
        const problem = problemOf(name, args.with(index, value))
        expect(problem?.code, JSON.stringify(value)).toBe(-32602)
        expect(problem.data).toMatchObject({ reason: 'INVALID_PARAMS', parameter, index })
        expect(problem.message).toContain(parameter)
      }
  })

  it('refuses too few and too many', () => {
    const required = params.filter(({ optional }) => !optional).length
    for (let count = 0; count < required; count++)
      expect(problemOf(name, args.slice(0, count))).toMatchObject({
        code: -32602,
        message: `parameter ${count + 1} (${params[count]?.name}) is missing`,
      })
    expect(problemOf(name, [...args, '0x1'])?.code).toBe(-32602)
  })
})

describe('the id of a filter or subscription', () => {
  const names = [
    'evm_getFilterChanges',
    'evm_getFilterLogs',
    'evm_uninstallFilter',
    'evm_unsubscribe',
  ]
  it.each(names)('%s takes any text: an unknown one is answered, not refused', (name) => {
    for (const id of ['0x1', '0x01', 'gone', '1', '', 'x'.repeat(101)])
      expect(problemOf(name, [id])).toBeUndefined()
    for (const id of [1, null, {}]) expect(problemOf(name, [id])).toMatchObject({ code: -32602 })
  })
})

describe('the options of a subscription', () => {
  it('are an object: a list is none', () => {
    for (const options of [{}, { includeTransactions: true }, null, true])
      expect(problemOf('evm_subscribe', ['newHeads', options])).toBeUndefined()
    for (const options of [[], 'x', 5])
      expect(problemOf('evm_subscribe', ['logs', options])).toMatchObject({
        code: -32602,
        data: { parameter: 'options', index: 1 },
      })
  })
})

describe('beyond the table', () => {
  it('takes the state of a block by its hash, and a storage position of 32 bytes', () => {
    expect(problemOf('eth_getBalance', [address, hash])).toBeUndefined()
    expect(problemOf('eth_getBalance', [address, { blockHash: hash }])).toBeUndefined()
    expect(problemOf('eth_call', [{}, { blockNumber: '0x1' }])).toBeUndefined()
    expect(problemOf('eth_getStorageAt', [address, hash, 'latest'])).toBeUndefined()
    expect(problemOf('eth_getBalance', [address, { blockHash: '0x1' }])?.code).toBe(-32602)
    expect(problemOf('eth_getBlockByNumber', [hash, false])?.code).toBe(-32602)
  })

  it('refuses a duplicate field', () => {
    const check = find('eth_call')!.check!
    const raw = `[{"to":"${address}","\\u0074o":"${address}"},"latest"]`
    expect(JSON.parse(check(JSON.parse(raw), raw)!.error).message).toContain('twice')
  })

  it('passes allowed methods on and knows nothing else', () => {
    expect(find('evm_chainId')).toBe(find('eth_chainId'))
    expect(find('eth_getProof')?.name).toBe('eth_getProof')
    for (const name of ['eth_accounts', 'debug_traceCall', 'eth_sign', 'toString', '__proto__'])
      expect(find(name)).toBeUndefined()
    expect(list.length).toBe(38)
  })

  it('uses the prefix of the chain', () => {
    const klay = createMethods({ prefix: 'klay', allowed: ['evm_chainId'] })
    expect(klay.find('evm_getBalance')?.name).toBe('klay_getBalance')
    expect(klay.find('klay_getBalance')).toBe(klay.find('evm_getBalance'))
    expect(klay.find('eth_getBalance')).toBeUndefined()
    expect(klay.find('net_version')?.name).toBe('net_version')
  })
})
