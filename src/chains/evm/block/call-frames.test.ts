import { describe, expect, it } from 'vitest'
import { readCallTracer, readParityTraces } from './call-frames.ts'

const hash = `0x${'e'.repeat(64)}`
const block_hash = `0x${'b'.repeat(64)}`
const one = `0x${'1'.repeat(40)}`
const two = `0x${'2'.repeat(40)}`

type Frame = Record<string, unknown> & { calls?: Frame[] }
const call = (calls?: Frame[], more: Frame = {}): Frame => ({
  ...{ type: 'CALL', from: one, to: two, gas: '0x10', gasUsed: '0x5', input: '0x', value: '0x1' },
  ...(calls && { calls }),
  ...more,
})

describe('callTracer', () => {
  it('is read depth first, without the top call', () => {
    const tree = call([call([call(), call([call()])]), call()])
    expect(readCallTracer(tree, hash).map(({ trace_index }) => trace_index)).toEqual([
      ...['0', '0_0', '0_1', '0_1_0', '1'],
    ])
  })

  it('may be as deep and as wide as a contract can make it', () => {
    let deep = call()
    for (let level = 0; level < 1_024; level++) deep = call([deep])
    const frames = readCallTracer(deep, hash)
    expect(frames).toHaveLength(1_024)
    expect(frames.at(-1)?.trace_index.split('_')).toHaveLength(1_024)
    const wide = readCallTracer(call(Array.from({ length: 200_000 }, () => call())), hash)
    expect(wide).toHaveLength(200_000)
    expect(wide.at(-1)?.trace_index).toBe('199999')
  })

  it('says of a failed creation that nothing was made', () => {
    const failed = { type: 'CREATE2', to: undefined, error: 'out of gas', output: undefined }
    expect(readCallTracer(call([call([], failed)]), hash)).toEqual([
      {
        ...{ transaction_hash: hash, from: one, to: null, gas: 16, gas_used: 5, input: '0x' },
        ...{ output: '0x', call_type: 'create2', trace_index: '0', value: '1' },
        error: 'out of gas',
      },
    ])
  })

  it('of which only amounts are beyond 2^53 writes them as decimal text', () => {
    const [frame] = readCallTracer(call([call([], { value: `0x${'f'.repeat(64)}` })]), hash)
    expect(frame?.value).toBe(`${2n ** 256n - 1n}`)
  })

  it.each([
    ['null', null],
    ['nothing', {}],
    ['the result of another tracer', { failed: false, gas: 0, returnValue: '0x', structLogs: [] }],
    ['a frame without a sender', call([{ type: 'CALL' }])],
    ['calls that are no list', call(undefined, { calls: 'none' as never })],
  ])('that is %s is refused', (_, result) => {
    expect(() => readCallTracer(result, hash)).toThrow()
  })
})

const trace = (traceAddress: number[], more: Record<string, unknown> = {}) => ({
  ...{ type: 'call', blockHash: block_hash, transactionHash: hash, traceAddress },
  action: { callType: 'call', from: one, to: two, gas: '0x10', input: '0x', value: '0x1' },
  result: { gasUsed: '0x5', output: '0x' },
  ...more,
})
const read = (result: unknown) => readParityTraces(result, { transaction_hash: hash, block_hash })

describe('trace_transaction', () => {
  it('is put in order, numbers as numbers', () => {
    const places = [[], [10], [2], [0, 1], [0], [2, 0]]
    expect(read(places.map((place) => trace(place))).map((frame) => frame.trace_index)).toEqual([
      ...['0', '0_1', '2', '2_0', '10'],
    ])
  })

  it('names failures as the other tracer does', () => {
    const errors = ['Reverted', 'Out of gas', 'Bad instruction', 'Mutable Call In Static Context']
    const frames = read([trace([]), ...errors.map((error, at) => trace([at], { error }))])
    expect(frames.map(({ error }) => error)).toEqual([
      ...['execution reverted', 'out of gas', 'invalid opcode', 'Mutable Call In Static Context'],
    ])
  })

  it('without the way of creation is a creation', () => {
    const action = { from: one, gas: '0x10', init: '0xfe', value: '0x0' }
    const [frame] = read([
      trace([]),
      trace([0], { type: 'create', action, result: null, error: 'x' }),
    ])
    expect(frame).toMatchObject({ call_type: 'create', to: null, gas_used: 16, input: '0xfe' })
  })

  it.each([
    ['empty', []],
    ['null', null],
    ['of another block', [trace([]), trace([0], { blockHash: `0x${'c'.repeat(64)}` })]],
    ['without places', [trace([], { traceAddress: undefined })]],
  ])('that is %s is refused', (_, result) => {
    expect(() => read(result)).toThrow()
  })
})
