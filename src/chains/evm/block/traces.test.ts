import { describe, expect, it } from 'vitest'
import { addressOf, wordOf } from '../testing/stub-chain.ts'
import { readFrames, readTraces } from './traces.ts'

const [a, b, c, d] = [1, 2, 3, 4].map(addressOf) as [string, string, string, string]
const [hash, tx1, tx2] = [wordOf(100), wordOf(1), wordOf(2)]
const frame = (type: string, from: string, to: string, value: number, rest: object = {}) => ({
  type,
  from,
  to,
  value: `0x${value.toString(16)}`,
  ...rest,
})

describe('frames of callTracer', () => {
  const read = (calls: object[], root: object = {}) =>
    readFrames([{ txHash: tx1, result: { ...frame('CALL', a, b, 99), calls, ...root } }], [tx1])

  it('count where coin moved, in their order, without the transaction itself', () => {
    const inner = frame('CALL', c, d, 2)
    expect(
      read([frame('CALL', b, c, 1, { calls: [inner] }), frame('SELFDESTRUCT', b, a, 3)]),
    ).toEqual([
      [
        { from: b, to: c, value: 1n },
        { from: c, to: d, value: 2n },
        { from: b, to: a, value: 3n },
      ],
    ])
    expect(read([frame('CREATE', b, c, 1), frame('CREATE2', b, d, 2)])![0]).toHaveLength(2)
  })

  it('that run on the value of their caller move nothing', () => {
    for (const type of ['DELEGATECALL', 'STATICCALL', 'CALLCODE'])
      expect(read([frame(type, b, c, 5)])).toEqual([[]])
    const below = frame('DELEGATECALL', b, c, 5, { calls: [frame('CALL', b, d, 5)] })
    expect(read([below])).toEqual([[{ from: b, to: d, value: 5n }]])
  })

  it('that failed move nothing, and neither do their children', () => {
    const failed = { error: 'execution reverted', calls: [frame('CALL', c, d, 2)] }
    expect(read([frame('CALL', b, c, 1, failed)])).toEqual([[]])
    expect(read([frame('CALL', b, c, 1)], { error: 'out of gas' })).toEqual([[]])
  })

  it.each([
    ['fewer than the transactions', []],
    ['of another transaction', [{ txHash: tx2, result: frame('CALL', a, b, 1) }]],
    ['of another tracer', [{ txHash: tx1, result: {} }]],
    ['an error', [{ txHash: tx1, error: 'timeout' }]],
    ['nothing', null],
  ])('%s are refused', (_, result) => {
    expect(readFrames(result, [tx1])).toBeUndefined()
  })
})

describe('entries of trace_block', () => {
  const trace = (path: number[], action: object, rest: object = {}) => ({
    type: 'call',
    blockHash: hash,
    transactionHash: tx1,
    traceAddress: path,
    action,
    result: {},
    ...rest,
  })
  const call = (from: string, to: string, value: number, callType = 'call') => ({
    callType,
    from,
    to,
    value: `0x${value}`,
  })
  const root = trace([], call(a, b, 9))
  const read = (...traces: object[]) => readTraces([root, ...traces], { hash, hashes: [tx1] })

  it('match the result of callTracer', () => {
    expect(
      read(
        trace([0], call(b, c, 1)),
        trace([0, 0], call(c, d, 2)),
        trace([1], call(b, c, 5, 'delegatecall')),
        trace([2], { from: b, value: '0x3' }, { type: 'create', result: { address: d } }),
        trace([3], { address: b, refundAddress: a, balance: '0x4' }, { type: 'suicide' }),
      ),
    ).toEqual([
      [
        { from: b, to: c, value: 1n },
        { from: c, to: d, value: 2n },
        { from: b, to: d, value: 3n },
        { from: b, to: a, value: 4n },
      ],
    ])
  })

  it('that failed move nothing, and neither do their children; their siblings do', () => {
    const failed = trace([1], call(b, c, 1), { error: 'Reverted', result: null })
    expect(read(failed, trace([1, 0], call(c, d, 2)), trace([10], call(b, d, 3)))).toEqual([
      [{ from: b, to: d, value: 3n }],
    ])
    const lost = trace([], call(a, b, 9), { error: 'Reverted' })
    const all = readTraces([lost, trace([0], call(b, c, 1))], { hash, hashes: [tx1] })
    expect(all).toEqual([[]])
  })

  it('of another block, of an unknown transaction, or without one of ours are refused', () => {
    expect(read({ ...root, blockHash: wordOf(101) })).toBeUndefined()
    expect(read({ ...root, transactionHash: tx2 })).toBeUndefined()
    expect(readTraces([root], { hash, hashes: [tx1, tx2] })).toBeUndefined()
  })

  it('of rewards belong to no transaction', () => {
    const reward = trace([], { author: a, value: '0x1' }, { type: 'reward', transactionHash: null })
    expect(read(reward)).toEqual([[]])
  })
})
