import { describe, expect, it } from 'vitest'
import type { Head, PoolRequest } from '../chains/upstream/pool-types.ts'
import { silentLog } from '../lib/log.ts'
import type { Answer } from './answer.ts'
import { createFakePool } from './fake-pool.ts'
import { createNetwork } from './network.ts'

const hash = (number: number, branch = 0) =>
  `0x${branch.toString(16).padStart(4, '0')}${number.toString(16).padStart(60, '0')}`
const head = (number: number, branch = 0, parent = branch): Head => ({
  number,
  hash: hash(number, branch),
  parent_hash: hash(number - 1, parent),
  timestamp: number,
})
const address = `0x${'a'.repeat(40)}`
const principal = (credential_id: string) => ({
  credential_id,
  organization_id: 'o',
  role: 'ROLE_MEMBER' as const,
})

const open = ({ upstreams = 2, cacheBytes = 1_000_000, maxLogRange = 1000 } = {}) => {
  const pool = createFakePool({ upstreams })
  let time = 1_000_000
  pool.best = head(100)
  pool.answer = ({ params }) => ({ ok: true, result: JSON.stringify(params) })
  const network = createNetwork({
    chain: 'c',
    network: 'm',
    prefix: 'eth',
    pool,
    allowedMethods: ['evm_feeHistory'],
    cacheBytes,
    finalityDepth: 10,
    maxLogRange,
    timeoutMs: 1000,
    log: silentLog,
    now: () => time,
    spill: () => {},
  })
  const call = (method: string, args: unknown[], key = 'k') =>
    new Promise<Answer>((resolve) =>
      network.call(
        { id: '1', method, params: JSON.stringify(args), args, refusal: undefined },
        network.sessionOf(principal(key)),
        resolve,
      ),
    )
  const pass = (ms: number) => {
    time += ms
  }
  return { pool, network, call, pass, last: () => pool.sent.at(-1) as PoolRequest }
}

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
        ? { ok: true, result: `{"parentHash":"${hash(98)}"}` }
        : { ok: true, result: '"0x1"' }
    pool.show({ ...head(101, 1), parent_hash: hash(100, 1) })
    expect((await call('eth_getBalance', old)).hit).toBe(true)
    expect((await call('eth_getBalance', young)).hit).toBe(false)
  })

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

describe('getLogs', () => {
  const log = (number: number) => `{"blockNumber":"0x${number.toString(16)}"}`
  const numbers = (text: string) =>
    (JSON.parse(text) as { blockNumber: string }[]).map((one) => Number(one.blockNumber))
  const refusingOver = (most: number, error: string) => (request: PoolRequest) => {
    const [{ fromBlock, toBlock }] = JSON.parse(request.params)
    const [from, to] = [Number(fromBlock), Number(toBlock)]
    if (to - from + 1 > most) return { ok: false as const, error }
    const logs = Array.from({ length: to - from + 1 }, (_, index) => log(from + index))
    return { ok: true as const, result: `[${logs.join(',')}]` }
  }

  it.each([
    [7, '{"code":-32602,"message":"exceed maximum block range 7"}'],
    [1, '{"code":-32005,"message":"query returned more than 10000 results"}'],
    [33, '{"code":-32000,"message":"Log response size exceeded."}'],
  ])('is split until nodes take it: at most %i blocks', async (most, error) => {
    const { call, pool } = open()
    pool.answer = refusingOver(most, error)
    const { text, hit } = await call('eth_getLogs', [{ fromBlock: '0x1', toBlock: 'latest' }])
    expect(numbers(text)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1))
    expect(hit).toBe(false)
    const again = await call('eth_getLogs', [{ fromBlock: '0x1', toBlock: 'latest' }])
    expect(again).toMatchObject({ text, hit: true, number: 100, hash: hash(100) })
  })

  it('in parts is asked for anew when the chain changes meanwhile: no mix of two branches', async () => {
    const { call, pool } = open()
    let branch = 0
    let parts = 0
    pool.answer = (request) => {
      if (request.method !== 'eth_getLogs')
        return { ok: true, result: `{"parentHash":"${hash(90)}"}` }
      const reply = refusingOver(20, '{"code":-32005,"message":"too many results"}')(request)
      if (!reply.ok) return reply
      const result = reply.result.replaceAll('"}', `","blockHash":"${branch}"}`)
      if (++parts === 3) {
        branch = 1
        pool.show(head(100, 1))
      }
      return { ok: true, result }
    }
    const { text } = await call('eth_getLogs', [{ fromBlock: '0x1', toBlock: '0x64' }])
    const logs: { blockHash: string }[] = JSON.parse(text)
    expect(logs).toHaveLength(100)
    expect(new Set(logs.map(({ blockHash }) => blockHash))).toEqual(new Set(['1']))
  })

  it('in parts is refused for now when the chain does not come to rest', async () => {
    const { call, pool } = open()
    let branch = 0
    pool.answer = (request) => {
      if (request.method !== 'eth_getLogs')
        return { ok: true, result: `{"parentHash":"${hash(90)}"}` }
      const reply = refusingOver(20, '{"code":-32005,"message":"too many results"}')(request)
      if (reply.ok) pool.show(head(100, ++branch))
      return reply
    }
    const { refusal } = await call('eth_getLogs', [{ fromBlock: '0x1', toBlock: '0x64' }])
    expect(refusal?.reason).toBe('UPSTREAM_UNAVAILABLE')
  })

  it('gives up within bounds and names what may be asked for', async () => {
    const { call, pool } = open({ maxLogRange: 10_000 })
    pool.best = head(5_000)
    pool.answer = refusingOver(1, '{"code":-32005,"message":"too many results"}')
    const { text, refusal } = await call('eth_getLogs', [{ fromBlock: '0x1', toBlock: '0x1000' }])
    expect(refusal?.reason).toBe('LOG_RANGE_TOO_LARGE')
    const { code, data } = JSON.parse(text)
    expect(code).toBe(-32602)
    expect(data.max_range).toBeGreaterThan(100)
    expect(pool.sent.length).toBeLessThan(300)
  })

  it('over too many blocks is refused without asking anybody', async () => {
    const { call, pool } = open({ maxLogRange: 50 })
    const { text } = await call('eth_getLogs', [{ fromBlock: '0x1', toBlock: 'latest' }])
    expect(JSON.parse(text)).toEqual({
      code: -32602,
      message: 'At most 50 blocks can be asked for at once.',
      data: {
        source: 'gateway',
        reason: 'LOG_RANGE_TOO_LARGE',
        max_range: 50,
        from_block: '0x1',
        to_block: '0x32',
      },
    })
    expect(pool.sent.length).toBe(0)
  })

  it('passes the error of a single block on', async () => {
    const { call, pool } = open()
    const error = '{"code":-32005,"message":"query returned more than 10000 results"}'
    pool.answer = () => ({ ok: false, error })
    const { text } = await call('eth_getLogs', [{ fromBlock: '0x5', toBlock: '0x5' }])
    expect(text).toBe(error)
  })

  it('knows the block hash under both spellings', async () => {
    const { call, last } = open()
    await call('eth_getLogs', [{ blockhash: hash(100), topics: [] }])
    expect(JSON.parse(last().params)).toEqual([{ blockHash: hash(100), topics: [] }])
    await call('eth_getLogs', [{ blockHash: hash(100) }])
    expect(JSON.parse(last().params)).toEqual([{ blockHash: hash(100) }])
  })

  const beyond = {
    anvil:
      '{"code":-32602,"message":"BlockOutOfRangeError: block height is 100 but requested was 200"}',
    geth: '{"code":-32602,"message":"block range extends beyond current head block"}',
    other: '{"code":-32000,"message":"toBlock is in the future"}',
  }

  it.each(Object.entries(beyond))(
    'that ends after the head covers what exists: %s',
    async (_, error) => {
      const { call, pool } = open()
      pool.answer = (request) =>
        request.params.includes('0xc8') ? { ok: false, error } : refusingOver(1000, '')(request)
      const { text, hit } = await call('eth_getLogs', [{ fromBlock: '0x62', toBlock: '0xc8' }])
      expect(numbers(text)).toEqual([98, 99, 100])
      expect(hit).toBeUndefined()
      // However far: what does not exist yet is not counted.
      const far = await call('eth_getLogs', [{ fromBlock: '0x62', toBlock: '0xc8ffffff' }])
      expect(numbers(far.text)).toEqual([98, 99, 100])
    },
  )

  it.each([
    ['begins after the head', { fromBlock: '0xc8' }],
    ['begins after the head', { fromBlock: '0xc8', toBlock: '0xc9' }],
    ['runs backwards', { fromBlock: 'latest', toBlock: '0x1' }],
    ['runs backwards', { fromBlock: '0x5', toBlock: '0x1' }],
    ['stands beside a hash', { blockHash: hash(100), fromBlock: '0x1' }],
  ])('whose range %s gets what nodes say to it: %j', async (_, filter) => {
    const { call, pool, last } = open()
    for (const error of [beyond.geth, '{"code":-32602,"message":"invalid block range params"}']) {
      pool.answer = () => ({ ok: false, error })
      expect((await call('eth_getLogs', [filter])).text).toBe(error)
      expect(JSON.parse(last().params)).toEqual([filter])
    }
    const asked = pool.sent.length
    expect(asked).toBe(2)
    pool.answer = () => ({ ok: true, result: '[]' })
    const answer = await call('eth_getLogs', [filter])
    expect(answer).toMatchObject({ ok: true, text: '[]', hit: undefined })
  })

  it('gives the first error when asking again does not help', async () => {
    const { call, pool } = open()
    const first = '{"code":-32602,"message":"query exceeds max block range 50"}'
    pool.answer = ({ params }) =>
      params.includes('"0x1","toBlock":"0x64"')
        ? { ok: false, error: first }
        : { ok: false, error: '{"code":-32000,"message":"internal"}' }
    const filter = { fromBlock: '0x1', toBlock: '0x64' }
    expect((await call('eth_getLogs', [filter])).text).toBe(first)
    pool.answer = ({ params }) =>
      params.includes('"0x1","toBlock":"0x64"')
        ? { ok: false, error: first }
        : { failure: 'NO_UPSTREAM' }
    expect((await call('eth_getLogs', [filter])).text).toBe(first)
  })

  it.each([
    [{ fromBlock: '0x1', toBlock: 'pending' }],
    [{ fromBlock: '0x1', toBlock: 'safe' }],
    [{ fromBlock: '0x1', toBlock: 'finalized' }],
    [{ fromBlock: 'earliest' }],
    [{ fromBlock: '0x1', toBlock: '0xffffff' }],
    [{ blockHash: hash(100), fromBlock: '0x1' }],
  ])('counts the blocks of every tag against the largest range: %j', async (filter) => {
    const { call, pool } = open({ maxLogRange: 50 })
    pool.answer = ({ method }) =>
      method === 'eth_getBlockByNumber'
        ? { ok: true, result: '{"number":"0x5f"}' }
        : { ok: true, result: '[]' }
    const { refusal } = await call('eth_getLogs', [filter])
    expect(refusal?.reason).toBe('LOG_RANGE_TOO_LARGE')
    expect(pool.sent.every(({ method }) => method === 'eth_getBlockByNumber')).toBe(true)
    // Also for a key that has just sent a transaction, and is shown no head.
    pool.broadcast = async () => ({ ok: true, result: `"${hash(7)}"` })
    await call('eth_sendRawTransaction', ['0x02'])
    expect((await call('eth_getLogs', [filter])).refusal?.reason).toBe('LOG_RANGE_TOO_LARGE')
  })

  it('asks for safe and finalized blocks by their numbers, which are asked for once per head', async () => {
    const { call, pool, last } = open({ maxLogRange: 50 })
    pool.answer = ({ method, params }) =>
      method === 'eth_getBlockByNumber'
        ? { ok: true, result: `{"number":"${params.includes('safe') ? '0x50' : '0x40'}"}` }
        : { ok: true, result: '[]' }
    await call('eth_getLogs', [{ fromBlock: 'finalized', toBlock: 'safe' }])
    expect(JSON.parse(last().params)).toEqual([{ fromBlock: '0x40', toBlock: '0x50' }])
    await call('eth_getLogs', [{ fromBlock: 'safe', address }])
    expect(JSON.parse(last().params)).toEqual([{ fromBlock: '0x50', toBlock: '0x64', address }])
    expect(pool.sent.filter(({ method }) => method === 'eth_getBlockByNumber')).toHaveLength(2)
    pool.show(head(101))
    pool.answer = () => ({ ok: false, error: '{"code":-32000,"message":"safe block not found"}' })
    const { text } = await call('eth_getLogs', [{ fromBlock: 'safe' }])
    expect(text).toBe('{"code":-32000,"message":"safe block not found"}')
  })

  describe('by the hash of a block', () => {
    const unknown = { code: -32000, message: 'unknown block' }

    it('that no node knows is an error, also where nodes answer with an empty list', async () => {
      const { call, pool } = open()
      pool.answer = ({ method }) => ({ ok: true, result: method === 'eth_getLogs' ? '[]' : 'null' })
      const { text, refusal } = await call('eth_getLogs', [{ blockHash: hash(7, 9) }])
      expect(JSON.parse(text)).toMatchObject(unknown)
      expect(refusal?.reason).toBe('LOG_BLOCK_NOT_FOUND')
    })

    it('that has left the chain is an error, with logs and without', async () => {
      const { call, pool } = open()
      const orphan = hash(100, 9)
      const logs = `[{"blockNumber":"0x64","blockHash":"${orphan}"}]`
      for (const result of ['[]', logs]) {
        pool.answer = ({ method }) => ({
          ok: true,
          result: method === 'eth_getLogs' ? result : `{"number":"0x64","hash":"${orphan}"}`,
        })
        expect(JSON.parse((await call('eth_getLogs', [{ blockHash: orphan }])).text)).toMatchObject(
          unknown,
        )
      }
    })

    it('that is older than the window is answered', async () => {
      const { call, pool } = open()
      const old = hash(7)
      pool.answer = ({ method }) => ({
        ok: true,
        result: method === 'eth_getLogs' ? '[]' : `{"number":"0x7","hash":"${old}"}`,
      })
      expect((await call('eth_getLogs', [{ blockHash: old }])).text).toBe('[]')
    })

    it('passes the error of the nodes on', async () => {
      const { call, pool } = open()
      pool.answer = () => ({ ok: false, error: JSON.stringify(unknown) })
      for (const one of [hash(100), hash(7, 9)])
        expect((await call('eth_getLogs', [{ blockHash: one }])).text).toBe(JSON.stringify(unknown))
    })
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
