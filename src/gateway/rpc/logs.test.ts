import { describe, expect, it } from 'vitest'
import type { PoolRequest } from '../../chains/evm/pool/pool-types.ts'
import { address, hash, head, open } from '../testing/dispatch-setup.ts'

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

  it('a request in parts is repeated when the chain changes: no mix of two branches', async () => {
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

  it('a request in parts is refused for now while the chain keeps changing', async () => {
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

  it('gives up within bounds and names the allowed range', async () => {
    const { call, pool } = open({ maxLogRange: 10_000 })
    pool.show(head(5_000))
    pool.answer = refusingOver(1, '{"code":-32005,"message":"too many results"}')
    const { text, refusal } = await call('eth_getLogs', [{ fromBlock: '0x1', toBlock: '0x1000' }])
    expect(refusal?.reason).toBe('LOG_RANGE_TOO_LARGE')
    const { code, data } = JSON.parse(text)
    expect(code).toBe(-32602)
    expect(data.max_range).toBeGreaterThan(100)
    expect(pool.sent.length).toBeLessThan(300)
  })

  it('over too many blocks is refused without asking a node', async () => {
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

  it('of a filter of the gateway is asked for as that of its filter', async () => {
    const { call, pool, last } = open()
    pool.answer = () => ({ ok: true, result: '[]' })
    expect((await call('eth_getFilterLogs', ['0xf'])).text).toBe('[]')
    expect(last()).toMatchObject({
      method: 'eth_getLogs',
      params: JSON.stringify([{ fromBlock: '0x5', toBlock: '0x9', address }]),
    })
    const { text, refusal } = await call('evm_getFilterLogs', ['0x1'])
    expect(refusal?.reason).toBe('FILTER_NOT_FOUND')
    expect(JSON.parse(text)).toMatchObject({ code: -32000, message: 'filter not found' })
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
