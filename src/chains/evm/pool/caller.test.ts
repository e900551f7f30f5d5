import { describe, expect, test } from 'vitest'
import { setUp } from '../testing/caller-setup.ts'
import { createFakeUpstream, error, headOf, result } from '../testing/fake-upstream.ts'
import type { PoolRequest, RpcReply } from './pool-types.ts'

describe('failover', () => {
  test('asks the next node when one fails', async () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const { call, clock } = setUp([a, b])
    const outcomes = call()
    a.answer({ failed: 'closed', detail: '' })
    b.answer(result(1))
    await clock.advance(1)
    expect(outcomes).toEqual([result(1)])
  })

  test('a call that may not be repeated is repeated only when it was not sent', async () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const { call } = setUp([a, b])
    const lost = call({ idempotent: false })
    a.answer({ failed: 'closed', detail: '' })
    expect(lost).toEqual([{ failure: 'NO_UPSTREAM' }])
    const unsent = call({ idempotent: false })
    a.answer({ failed: 'connect', detail: '' })
    b.answer(result(2))
    expect(unsent).toEqual([result(2)])
  })

  test('an error of the node is the answer', () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const { call } = setUp([a, b])
    const outcomes = call()
    a.answer(error(3, 'execution reverted'))
    expect(outcomes).toEqual([error(3, 'execution reverted')])
    expect(b.calls).toHaveLength(0)
  })

  test('an answer that cannot be true is never given, and counts against the node', async () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const { call, clock, observed } = setUp([a, b])
    const isWrong: PoolRequest['isWrong'] = (reply) => reply.ok && reply.result === '"lie"'
    const outcomes = call({ isWrong })
    a.answer(result('lie'))
    b.answer(result('truth'))
    expect(outcomes).toEqual([result('truth')])
    expect(observed).toEqual(['a eth_call bad_reply', 'b eth_call ok'])
    a.behave = b.behave = () => result('lie')
    const none = call({ isWrong })
    await clock.advance(20_000)
    expect(none).toEqual([{ failure: 'NO_UPSTREAM' }])
  })

  test('a response of one node that is too large does not end the call while another node is unreachable', async () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b')]
    const { call, clock, caller } = setUp([a, b])
    b.isVerified = false
    const outcomes = call()
    a.answer({ failed: 'too_large', detail: '' })
    await clock.advance(500)
    expect(outcomes).toEqual([])
    b.isVerified = true
    caller.wake()
    await clock.advance(1)
    expect(a.calls).toHaveLength(0)
    b.answer(result(1))
    expect(outcomes).toEqual([result(1)])
  })

  test('an oversized answer is final when no other node returns', async () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b')]
    const { call, clock } = setUp([a, b])
    b.isVerified = false
    let asked = 0
    a.behave = () => {
      asked++
      return { failed: 'too_large', detail: '' }
    }
    const outcomes = call()
    await clock.advance(5_000)
    expect(outcomes).toEqual([{ failure: 'REPLY_TOO_LARGE' }])
    expect(asked).toBe(2)
  })

  test('an answer that says "not here" is returned only when no other node has the data', () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const { call } = setUp([a, b])
    const found = call()
    a.answer(error(-32000, 'header not found'))
    b.answer(result('found'))
    expect(found).toEqual([result('found')])
    const missing = call({ isUseless: (reply) => reply.ok && reply.result === 'null' })
    a.answer(result(null))
    b.answer(error(-32000, 'missing trie node'))
    expect(missing).toEqual([{ ...error(-32000, 'missing trie node'), isDisputed: true }])
  })

  test.each([
    [[error(-32000, 'header not found'), error(-32000, 'unknown block')], 0],
    [[error(-32601, 'Method not found'), error(-32000, 'unknown block')], 1],
    [[error(-32000, 'unknown block'), error(-32601, 'Method not found')], 0],
    [[error(-32000, 'unknown block'), result(null)], 0],
    [[result(null), error(-32601, 'Method not found')], 0],
  ])(
    'of several nodes that cannot serve it the first that says why is heard: %j',
    (replies, index) => {
      const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
      const { call } = setUp([a, b])
      const outcomes = call({ isUseless: (reply) => reply.ok && reply.result === 'null' })
      a.answer(replies[0] as RpcReply)
      b.answer(replies[1] as RpcReply)
      expect(outcomes).toEqual([replies[index]])
    },
  )

  describe('that one node has discarded something', () => {
    const pruned = error(4444, 'Pruned history unavailable')
    const everyNode: Partial<PoolRequest> = { isUseless: () => true }
    const open = () => {
      const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
      return { a, b, ...setUp([a, b]) }
    }

    test.each([
      [error(-32000, 'internal error'), error(-32000, 'internal error')],
      [error(-32000, 'header not found'), error(-32000, 'header not found')],
      [result('of no use'), { ...pruned, isDisputed: true as const }],
      [pruned, pruned],
      [error(-32601, 'Method not found'), pruned],
      [{ failed: 'too_large' as const, detail: '' }, { failure: 'REPLY_TOO_LARGE' as const }],
      [
        { failed: 'closed' as const, detail: '' },
        { ...pruned, isDisputed: true as const },
      ],
    ])('is the outcome only where the others say the same: %j', async (other, expected) => {
      for (const isFirst of [true, false]) {
        const { a, b, call, clock } = open()
        const outcomes = call(everyNode)
        a.answer(isFirst ? pruned : other)
        await clock.advance(1)
        b.answer(isFirst ? other : pruned)
        await clock.advance(20_000)
        expect(outcomes).toEqual([expected])
      }
    })
  })

  test.each([
    ['eth_getBlockByNumber', error(-32603, 'Internal error')],
    ['eth_getBlockReceipts', error(-32000, 'leveldb: corrupted block file')],
    ['eth_getLogs', error(-32000, 'internal server error')],
    ['eth_getTransactionReceipt', error(-32603, '')],
    ['eth_getBalance', { ok: false as const, error: '{}' }],
  ])(
    'an error of %s that nothing explains is not an answer while another node has one: %j',
    async (method, reply) => {
      const [a, b, c] = ['a', 'b', 'c'].map((name, priority) =>
        createFakeUpstream(name, { priority }),
      )
      const { call, clock, observed } = setUp([a!, b!, c!])
      const answered = call({ method })
      a!.answer(reply)
      b!.answer(result('it'))
      expect(answered).toEqual([result('it')])
      // Every node is asked once, and the first error is given.
      observed.length = 0
      a!.behave = () => reply
      b!.behave = c!.behave = () => error(-32000, 'another one')
      const refused = call({ method })
      await clock.advance(1)
      expect(refused).toEqual([reply])
      expect(observed).toEqual(['a', 'b', 'c'].map((name) => `${name} ${method} error`))
      for (const node of [a!, b!, c!]) {
        expect(node.gate.isCooling(clock.now())).toBe(false)
        expect(node.lacking.size).toBe(0)
        expect(node.breaker.state()).toBe('closed')
      }
    },
  )

  test.each([
    ['eth_call', error(-32000, 'stack underflow (0 <=> 1)')],
    ['eth_estimateGas', error(-32603, 'Internal error')],
    // The caller gives the tracer, whose words are in the error.
    ['debug_traceTransaction', error(-32000, 'ReferenceError: x is not defined')],
    ['eth_getLogs', error(-32602, 'invalid argument 0')],
    ['eth_getLogs', error(-32005, 'query returned more than 10000 results')],
  ])('an error of %s that may be about the call is the answer: %j', (method, reply) => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const { call } = setUp([a, b])
    const outcomes = call({ method })
    a.answer(reply)
    expect(outcomes).toEqual([reply])
    expect(b.calls).toHaveLength(0)
  })

  test('an error that may be about the parameters moves on, and marks no method as missing', () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const { call } = setUp([a, b])
    const outcomes = call()
    a.answer(error(-32602, 'data did not match any variant of untagged enum EthRpcCall'))
    b.answer(result('0x1'))
    expect(outcomes).toEqual([result('0x1')])
    expect(a.lacking.size).toBe(0)
    call()
    a.answer(error(-32601, 'Method not found'))
    expect(a.lacking.size).toBe(1)
  })

  test.each([
    [['too many requests'], error(-32602, 'invalid value: string "too many requests"')],
    [['too many requests'], error(-32603, 'not hex: too many requests')],
    [[{ data: '0x00' }], error(3, 'execution reverted: rate limit exceeded')],
    [[{ data: '0x00' }], error(-32000, 'max initcode size exceeded: code size 49153 limit 49152')],
    [[{}], error(-32005, 'max fee per gas less than block base fee')],
  ])('words of a user do not put a node to rest: %j %j', (params, reply) => {
    const a = createFakeUpstream('a')
    const { call, clock } = setUp([a])
    const outcomes = call({ params: JSON.stringify(params) })
    a.answer(reply)
    expect(outcomes).toEqual([reply])
    expect(a.gate.isCooling(clock.now())).toBe(false)
    call()
    a.answer(error(-32005, 'daily request count exceeded, request rate limited'))
    expect(a.gate.isCooling(clock.now())).toBe(true)
  })

  test('a node that lacks a method is asked for it last', () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const { call } = setUp([a, b])
    const first = call()
    a.answer(error(-32601, 'method not found'))
    b.answer(result(1))
    expect(first).toEqual([result(1)])
    call()
    expect([a.calls.length, b.calls.length]).toEqual([0, 1])
  })

  test('nodes that failed are asked again, a bounded number of times', async () => {
    const a = createFakeUpstream('a')
    const { call, clock } = setUp([a])
    let asked = 0
    a.behave = () => (++asked < 3 ? { failed: 'bad_reply', detail: '' } : result(asked))
    const outcomes = call()
    await clock.advance(1_000)
    expect(outcomes).toEqual([result(3)])
    a.behave = () => {
      asked++
      return { failed: 'too_large', detail: '' }
    }
    asked = 0
    const large = call()
    await clock.advance(5_000)
    expect(large).toEqual([{ failure: 'REPLY_TOO_LARGE' }])
    expect(asked).toBe(1)
  })

  test('is over at the time limit', async () => {
    const a = createFakeUpstream('a')
    const { call, clock } = setUp([a])
    const outcomes = call({ timeoutMs: 300 })
    const { timeoutMs } = a.calls[0]!
    expect(timeoutMs).toBe(300)
    await clock.advance(300)
    a.answer({ failed: 'timeout', detail: '' })
    expect(outcomes).toEqual([{ failure: 'TIMEOUT' }])
  })
})

describe('waiting', () => {
  test('for a node that comes back in time', async () => {
    const a = createFakeUpstream('a')
    a.isVerified = false
    const { call, clock, caller } = setUp([a])
    const outcomes = call()
    await clock.advance(1_500)
    expect(outcomes).toEqual([])
    a.isVerified = true
    caller.wake()
    await clock.advance(1)
    a.answer(result(1))
    expect(outcomes).toEqual([result(1)])
  })

  test('not longer than is bearable, and not at all when none has been there for long', async () => {
    const a = createFakeUpstream('a')
    a.isVerified = false
    const { call, clock } = setUp([a])
    const waiting = call()
    await clock.advance(2_100)
    expect(waiting).toEqual([{ failure: 'NO_UPSTREAM' }])
    const late = call()
    await clock.advance(1)
    expect(late).toEqual([{ failure: 'NO_UPSTREAM' }])
  })

  test('for a rate limit, up to the time limit of the call', async () => {
    const a = createFakeUpstream('a')
    const { call, clock } = setUp([a])
    const outcomes = call()
    a.answer({ failed: 'rate_limited', detail: '', retryAfterMs: 5_000 })
    await clock.advance(4_900)
    expect(a.calls).toHaveLength(0)
    await clock.advance(200)
    a.answer(result(1))
    expect(outcomes).toEqual([result(1)])
  })

  test('a rate-limited node is passed over, by status or by error', () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const { call } = setUp([a, b])
    const outcomes = call()
    a.answer(error(-32005, 'rate limit'))
    b.answer(result(1))
    expect(outcomes).toEqual([result(1)])
    call()
    expect([a.calls.length, b.calls.length]).toEqual([0, 1])
  })

  test('for the block that it needs', async () => {
    const [a, b] = [createFakeUpstream('a', { head: 99 }), createFakeUpstream('b', { head: 50 })]
    const { call, clock, caller } = setUp([a, b])
    const outcomes = call({ minBlock: 100 })
    await clock.advance(10)
    expect([a.calls.length, b.calls.length]).toEqual([0, 0])
    a.head = headOf(100)
    caller.wake()
    await clock.advance(1)
    a.answer(result(1))
    expect(outcomes).toEqual([result(1)])
  })

  test('never for methods that no node has', async () => {
    const a = createFakeUpstream('a')
    const { call, clock } = setUp([a])
    const outcomes = call({ needs: 'debug_trace' })
    expect(outcomes).toEqual([])
    await clock.advance(1)
    expect(outcomes).toEqual([{ failure: 'NO_UPSTREAM' }])
  })
})

describe('a full node', () => {
  test('gets the next call when it has answered one, the oldest first', async () => {
    const a = createFakeUpstream('a')
    a.room = 2
    const { call, clock } = setUp([a])
    const calls = ['1', '2', '3', '4'].map((params) => call({ params }))
    expect(a.calls.map(({ params }) => params)).toEqual(['1', '2'])
    a.answer(result('x'))
    await clock.advance(1)
    expect(a.calls.map(({ params }) => params)).toEqual(['2', '3'])
    const late = call({ params: '5' })
    for (let round = 0; round < 4; round++) a.answer(result('y'))
    expect(a.calls).toHaveLength(0)
    expect([...calls, late].every((outcomes) => outcomes.length === 1)).toBe(true)
  })

  test('does not keep what another can take', () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    a.room = 1
    const { call } = setUp([a, b])
    call()
    call()
    expect([a.calls.length, b.calls.length]).toEqual([1, 1])
  })

  test('is waited for rather than one that lags', () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { head: 50 })]
    a.room = 1
    const { call } = setUp([a, b])
    call()
    call()
    expect([a.calls.length, b.calls.length]).toEqual([1, 0])
  })

  test('a call that waits for it in vain ends in time', async () => {
    const a = createFakeUpstream('a')
    a.room = 0
    const { call, clock } = setUp([a])
    const outcomes = call({ timeoutMs: 500 })
    await clock.advance(600)
    expect(outcomes).toEqual([{ failure: 'TIMEOUT' }])
  })

  test('a call with demands that wait does not hold up the others', async () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { head: 98 })]
    a.room = 0
    const { call } = setUp([a, b])
    call({ minBlock: 100 })
    call()
    expect(b.calls).toHaveLength(1)
  })
})

test('a node whose circuit is open is still better than none', async () => {
  const a = createFakeUpstream('a')
  a.breaker.trip(0)
  const { call } = setUp([a])
  const outcomes = call()
  a.answer(result(1))
  expect(outcomes).toEqual([result(1)])
})

describe('the end of a call', () => {
  test('comes once, and late answers are ignored', async () => {
    const [a, b] = [createFakeUpstream('a'), createFakeUpstream('b', { priority: 1 })]
    const { call, observed } = setUp([a, b])
    const controller = new AbortController()
    const outcomes = call({ signal: controller.signal })
    controller.abort()
    expect(outcomes).toEqual([{ failure: 'ABORTED' }])
    a.answer(result(1))
    expect(outcomes).toHaveLength(1)
    expect(observed).toEqual(['a eth_call ok'])
  })

  test('is refused beyond the bound, asynchronously', async () => {
    const a = createFakeUpstream('a')
    const { call, clock } = setUp([a])
    for (let round = 0; round < 100; round++) call()
    const refused = call()
    expect(refused).toEqual([])
    await clock.advance(1)
    expect(refused).toEqual([{ failure: 'NO_UPSTREAM' }])
  })
})

test('callers that call again from within their answer neither grow the stack nor lose a call', async () => {
  const a = createFakeUpstream('a')
  a.room = 1
  const { caller, clock } = setUp([a], { maxInFlight: 100_000 })
  let asked = 0
  let answered = 0
  const next = () => {
    if (asked >= 60_000) return
    asked++
    caller.call({ method: 'eth_call', params: '[]', idempotent: true }, () => {
      answered++
      next()
    })
  }
  for (let count = 0; count < 20_000; count++) next()
  // The node is gone, and all that wait for it learn that at once.
  a.isVerified = a.isReachable = false
  await clock.advance(10_000)
  a.answer({ failed: 'connect', detail: '' })
  await clock.advance(60_000)
  expect(asked).toBe(60_000)
  expect(answered).toBe(60_000)
})
