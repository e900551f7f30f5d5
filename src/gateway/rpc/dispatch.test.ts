import { describe, expect, it } from 'vitest'
import { address, hash, head, open } from '../testing/dispatch-setup.ts'

describe('a call', () => {
  it('is pinned to the head, kept, and given again with the block that it depends on', async () => {
    const { call, pool, last } = open()
    const first = await call('eth_getBalance', [address, 'latest'])
    expect(last()).toMatchObject({
      method: 'eth_getBalance',
      params: `["${address}","0x64"]`,
      minBlock: 100,
      idempotent: true,
    })
    expect(first).toMatchObject({ ok: true, hit: false, number: 100, hash: hash(100) })
    const second = await call('evm_getBalance', [address, 'latest'])
    expect(second).toEqual({ ...first, hit: true })
    expect(pool.sent.length).toBe(1)
    pool.show(head(101))
    expect((await call('eth_getBalance', [address, 'latest'])).hit).toBe(false)
  })

  it('without a block is pinned as well where nodes agree that it means the latest', async () => {
    const { call, last } = open()
    await call('eth_call', [{ to: address }])
    expect(last().params).toBe(`[{"to":"${address}"},"0x64"]`)
    await call('eth_call', [{ to: address }, null])
    expect(last().params).toBe(`[{"to":"${address}"},"0x64"]`)
    await call('eth_estimateGas', [{ to: address }])
    expect(last().params).toBe(`[{"to":"${address}"}]`)
  })

  it('goes out as it came when nothing is kept', async () => {
    const { call, last } = open({ cacheBytes: 0 })
    const answer = await call('eth_getBalance', [address, 'latest'])
    expect(last().params).toBe(`["${address}","latest"]`)
    expect(answer.hit).toBeUndefined()
  })

  it.each(['pending', 'safe', 'finalized', '0x65'])('for %s is never kept', async (block) => {
    const { call, pool, last } = open()
    await call('eth_getBalance', [address, block])
    await call('eth_getBalance', [address, block])
    expect(pool.sent.length).toBe(2)
    expect(last().params).toBe(`["${address}","${block}"]`)
  })

  it('that fails or finds nothing is not kept', async () => {
    const { call, pool } = open()
    pool.answer = () => ({ ok: false, error: '{"code":3,"message":"execution reverted"}' })
    await call('eth_call', [{ to: address }, 'latest'])
    await call('eth_call', [{ to: address }, 'latest'])
    pool.answer = () => ({ ok: true, result: 'null' })
    await call('eth_getTransactionReceipt', [hash(1)])
    await call('eth_getTransactionReceipt', [hash(1)])
    expect(pool.sent.length).toBe(4)
  })

  it('passes an error of the node on as it is', async () => {
    const { call, pool } = open()
    const error = '{"code": 3, "message": "execution reverted", "data": "0x08c379a0"}'
    pool.answer = () => ({ ok: false, error })
    const answer = await call('eth_call', [{ to: address }, 'latest'])
    expect(answer).toMatchObject({ ok: false, text: error, refusal: undefined })
  })

  it('is made once while identical ones are on their way', async () => {
    const { call, pool } = open()
    pool.hold = true
    const answers = Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        call('eth_getBalance', [address, 'latest'], `key ${index}`),
      ),
    )
    const other = call('eth_getBalance', [address, '0x1'])
    expect(pool.sent.length).toBe(2)
    pool.release()
    expect(new Set((await answers).map(({ text }) => text)).size).toBe(1)
    await other
  })

  it('is asked for by the tag where nodes do not have the head', async () => {
    const { call, pool, last } = open()
    pool.answer = ({ params }) =>
      params.includes('latest')
        ? { ok: true, result: '"0x5"' }
        : { ok: false, error: '{"code":-32000,"message":"header not found"}' }
    expect((await call('eth_getBalance', [address, 'latest'])).text).toBe('"0x5"')
    expect(last().params).toBe(`["${address}","latest"]`)
  })

  it('goes to a node that is behind when the one in front is lost and the key has seen no more', async () => {
    const { call, pool } = open()
    pool.answer = ({ minBlock = 0 }) =>
      minBlock > 99 ? { failure: 'NO_UPSTREAM' } : { ok: true, result: '"0x5"' }
    expect((await call('eth_getBalance', [address, 'latest'])).text).toBe('"0x5"')
    expect(pool.sent.at(-1)?.minBlock).toBeUndefined()
  })

  it('never shows a key less than it has seen', async () => {
    const { call, pool } = open()
    await call('eth_blockNumber', [])
    pool.answer = ({ minBlock = 0 }) =>
      minBlock > 99 ? { failure: 'NO_UPSTREAM' } : { ok: true, result: '"0x63"' }
    const { refusal } = await call('eth_getBalance', [address, 'latest'])
    expect(refusal?.reason).toBe('UPSTREAM_UNAVAILABLE')
    expect((await call('eth_getBalance', [address, 'latest'], 'another')).ok).toBe(true)
  })

  it('looks at nodes again when the key has seen a block that is not known here yet', async () => {
    const { call, pool, pass, last } = open()
    pool.answer = () => ({
      ok: true,
      result: `{"blockNumber":"0x66","blockHash":"${hash(102)}","contractAddress":null}`,
    })
    await call('eth_getTransactionReceipt', [hash(1)])
    pool.answer = () => ({ ok: true, result: '"0x66"' })
    expect((await call('eth_blockNumber', [])).text).toBe('"0x66"')
    await call('eth_getBalance', [address, 'latest'])
    expect(last()).toMatchObject({ params: `["${address}","latest"]`, minBlock: 102 })
    // Another key may still be answered from the head that is known.
    expect((await call('eth_blockNumber', [], 'another')).text).toBe('"0x64"')
    // And a chain that stays behind for long was rolled back.
    pass(6_000)
    await call('eth_getBalance', [address, 'latest'])
    expect((await call('eth_blockNumber', [])).text).toBe('"0x64"')
  })

  it('looks at nodes again right after the key has sent a transaction', async () => {
    const { call, pool, pass } = open()
    pool.broadcast = async () => ({ ok: true, result: `"${hash(7)}"` })
    expect((await call('eth_sendRawTransaction', ['0x02'])).text).toBe(`"${hash(7)}"`)
    await call('eth_getBalance', [address, 'latest'])
    expect(pool.sent.at(-1)?.params).toContain('latest')
    pass(4_000)
    await call('eth_getBalance', [address, 'latest'])
    expect(pool.sent.at(-1)?.params).toContain('0x64')
  })

  it('keeps final blocks whatever happens above them, and drops the others with their block', async () => {
    const { call, pool } = open()
    const old = [address, '0x32']
    const young = [address, '0x64']
    await call('eth_getBalance', old)
    await call('eth_getBalance', young)
    expect((await call('eth_getBalance', young)).hit).toBe(true)
    pool.answer = ({ params }) =>
      params.includes('false')
        ? {
            ok: true,
            result: `{"number":"0x64","hash":"${hash(100, 1)}","parentHash":"${hash(99)}"}`,
          }
        : { ok: true, result: '"0x1"' }
    pool.show({ ...head(101, 1), parent_hash: hash(100, 1) })
    expect((await call('eth_getBalance', old)).hit).toBe(true)
    expect((await call('eth_getBalance', young)).hit).toBe(false)
  })

  it.each([
    ['eth_getBalance', [address], [address]],
    ['eth_getBalance', [address, null], [address]],
    ['eth_getStorageAt', [address, '0x0'], [address, '0x0']],
    ['eth_getTransactionCount', [address], [address]],
    ['eth_getCode', [address], [address]],
  ])(
    '%s without a block means the latest, which is what nodes receive: %j',
    async (name, args, sent) => {
      const { call, pool, last } = open()
      const first = await call(name, args)
      expect(last().params).toBe(JSON.stringify([...sent, '0x64']))
      expect(first).toMatchObject({ hit: false, number: 100 })
      expect((await call(name, args)).hit).toBe(true)
      // Without a head that is known to be there, and without a cache.
      pool.broadcast = async () => ({ ok: true, result: `"${hash(7)}"` })
      await call('eth_sendRawTransaction', ['0x02'])
      await call(name, args)
      expect(last().params).toBe(JSON.stringify([...sent, 'latest']))
      const bare = open({ cacheBytes: 0 })
      await bare.call(name, args)
      expect(bare.last().params).toBe(JSON.stringify([...sent, 'latest']))
    },
  )

  it('takes overrides of state and block, pinned and kept by all of them', async () => {
    const { call, last } = open()
    const overrides = { [address]: { balance: '0x1' } }
    const args = [{ to: address }, 'latest', overrides, { number: '0x5' }]
    await call('eth_call', args)
    expect(JSON.parse(last().params)).toEqual(args.with(1, '0x64'))
    expect((await call('eth_call', args)).hit).toBe(true)
    expect((await call('eth_call', args.slice(0, 3))).hit).toBe(false)
    await call('eth_call', [...args.slice(0, 1), null, ...args.slice(2)])
    expect(JSON.parse(last().params)).toEqual(args.with(1, '0x64'))
    await call('eth_estimateGas', [{ to: address }, '0x5', overrides])
    expect(JSON.parse(last().params)).toEqual([{ to: address }, '0x5', overrides])
  })

  it('of a method that only some nodes offer goes to those', async () => {
    const { call, pool, last } = open()
    pool.can = (capability) => capability === 'debug_trace'
    await call('debug_traceTransaction', [hash(1), {}])
    expect(last()).toMatchObject({ needs: 'debug_trace', params: JSON.stringify([hash(1), {}]) })
    await call('txpool_status', [])
    expect(last().needs).toBeUndefined()
    expect((await call('debug_traceCall', [])).refusal?.reason).toBe('RPC_METHOD_NOT_FOUND')
  })

  it.each([
    ['eth_subscribe', []],
    ['eth_subscribe', [5]],
    ['eth_unsubscribe', []],
    ['eth_unsubscribe', ['0x1']],
  ])(
    'over HTTP gets the error that %s needs a WebSocket, whatever its parameters are: %j',
    async (name, args) => {
      const { call } = open()
      expect((await call(name, args)).refusal?.reason).toBe('RPC_METHOD_NOT_FOUND')
    },
  )

  it('over HTTP has no subscriptions, and no filters yet', async () => {
    const { call } = open()
    for (const [method, args] of [
      ['eth_subscribe', ['newHeads']],
      ['eth_newBlockFilter', []],
    ] as const) {
      const { refusal } = await call(method, [...args])
      expect(refusal?.reason).toBe('RPC_METHOD_NOT_FOUND')
    }
  })
})

describe('words of users', () => {
  const revert = (message: string) => JSON.stringify({ code: 3, message, data: '0x08c379a0' })
  const errors = [
    revert('execution reverted: block not found'),
    revert('execution reverted: header not found'),
    '{"code":-32000,"message":"execution reverted: missing trie node"}',
    '{"code":-32015,"message":"state is pruned"}',
    '{"code":-32000,"message":"failed","data":"header not found"}',
  ]

  it.each(errors)('in an error do not switch the cache off for others: %s', async (error) => {
    const { call, pool } = open()
    const answer = pool.answer
    await call('eth_getBalance', [address, 'latest'])
    pool.answer = () => ({ ok: false, error })
    expect((await call('eth_call', [{ to: address }, 'latest'], 'mallory')).text).toBe(error)
    expect(pool.sent.length).toBe(2)
    pool.answer = answer
    expect((await call('eth_getBalance', [address, 'latest'], 'another')).hit).toBe(true)
  })

  it('an index that is not in the block does not switch it off either', async () => {
    const { call, pool } = open()
    await call('eth_getBalance', [address, 'latest'])
    pool.answer = () => ({ ok: true, result: 'null' })
    for (const name of [
      'eth_getTransactionByBlockNumberAndIndex',
      'eth_getUncleByBlockNumberAndIndex',
    ])
      expect((await call(name, ['latest', '0xffff'], 'mallory')).text).toBe('null')
    expect((await call('eth_getBalance', [address, 'latest'], 'another')).hit).toBe(true)
  })

  it('a block that is in the chain is not null because nodes fail', async () => {
    const { call, pool } = open()
    const error = '{"code":-32000,"message":"header not found"}'
    pool.answer = () => ({ ok: false, error })
    expect((await call('eth_getBlockByNumber', ['0x5', false])).text).toBe(error)
    expect((await call('eth_getBlockByNumber', ['0xc8', false])).text).toBe('null')
    expect((await call('eth_getBlockByHash', [hash(100), false])).text).toBe(error)
    expect((await call('eth_getBlockByHash', [hash(5, 9), false])).text).toBe('null')
  })
})
