import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Anvil, startAnvil } from '../../devnet/anvil/anvil.ts'
import { checkBlock } from '../../src/chains/evm/codec/header-hash.ts'
import { createPool } from '../../src/chains/evm/pool/pool.ts'
import type { Pool } from '../../src/chains/evm/pool/pool-types.ts'
import type { UpstreamOptions } from '../../src/chains/evm/pool/upstream.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { startChain, type TestChain } from '../helpers/anvil.ts'
import { waitFor } from '../helpers/wait-for.ts'

let chain: TestChain
const pools: Pool[] = []

beforeAll(async () => {
  chain = await startChain(3)
  await chain.mine(60)
})

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.stop()))
})

afterAll(() => chain.stop())

const open = async (upstreams: UpstreamOptions[]): Promise<Pool> => {
  const pool = createPool({
    network: 'test',
    prefix: 'eth',
    upstreams,
    clock: systemClock,
    log: silentLog,
  })
  pools.push(pool)
  await waitFor('every node is healthy', () =>
    pool
      .status()
      .every(({ state, capabilities }) => state === 'healthy' && capabilities.length > 0),
  )
  return pool
}

const name = (index: number) => `node-${index}`
const overHttp = (priorities = [0, 0, 0]): UpstreamOptions[] =>
  chain.nodes.map(({ url }, index) => ({ url, name: name(index), priority: priorities[index]! }))

const blockNumber = (pool: Pool, minBlock?: number) =>
  pool.request({
    method: 'eth_blockNumber',
    params: '[]',
    idempotent: true,
    ...(minBlock !== undefined && { minBlock }),
  })

const height = async (pool: Pool): Promise<number> => {
  const outcome = await blockNumber(pool)
  return 'ok' in outcome && outcome.ok ? Number(JSON.parse(outcome.result)) : -1
}

const stateOf = (pool: Pool, index: number) =>
  pool.status().find((status) => status.name === name(index))?.state

describe.each(['http', 'ws'] as const)('over %s', (kind) => {
  const nodes = () =>
    chain.nodes.map(({ url, wsUrl }, index) => ({
      url: kind === 'http' ? url : wsUrl,
      name: name(index),
      priority: index,
    }))

  test('detects the capabilities, head and chain of anvil', async () => {
    const pool = await open(nodes())
    const expected = ['archive', 'block_receipts', 'debug_trace', 'parity_trace', 'txpool']
    for (const status of pool.status())
      expect(status).toMatchObject({
        chain_id: 31337,
        client_version: 'anvil/v1.7.1',
        lag: 0,
        transport: kind,
        capabilities:
          kind === 'ws' ? [...expected.slice(0, 4), 'subscriptions', 'txpool'] : expected,
      })
    expect(pool.head()?.number).toBe(await chain.height(chain.nodes[0]!))
    expect(pool.can('debug_trace')).toBe(true)
  })

  test('a node that is killed costs no client an answer, and returns', async () => {
    const pool = await open(nodes())
    const before = Array.from({ length: 200 }, () => height(pool))
    await chain.nodes[0]!.kill()
    const after = Array.from({ length: 200 }, () => height(pool))
    expect((await Promise.all([...before, ...after])).filter((number) => number < 0)).toEqual([])
    await waitFor('it is missed', () => stateOf(pool, 0) === 'unreachable')
    await chain.restart(0, chain.nodes[1])
    await waitFor('it is back', () => stateOf(pool, 0) === 'healthy')
  })

  test('a node that stalls is left, also by the calls that it has already got', async () => {
    const pool = await open(nodes())
    await Promise.all(Array.from({ length: 100 }, () => height(pool)))
    const stalled = chain.nodes[0]!
    stalled.pause()
    const startedAt = Date.now()
    const answers = await Promise.all(Array.from({ length: 200 }, () => height(pool)))
    const took = Date.now() - startedAt
    stalled.resume()
    expect(answers.filter((number) => number < 0)).toEqual([])
    expect(took).toBeLessThan(6_000)
    await waitFor('it is back', () => stateOf(pool, 0) === 'healthy')
  })

  test('new heads of every node are reported', async () => {
    const pool = await open(nodes())
    const heard: string[] = []
    const leave = pool.onHead((head, upstream) => heard.push(`${upstream} ${head.number}`))
    await chain.mine()
    const number = await chain.height(chain.nodes[0]!)
    await waitFor('all are heard', () =>
      [0, 1, 2].every((index) => heard.includes(`${name(index)} ${number}`)),
    )
    leave()
    expect(new Set(heard).size).toBe(heard.length)
    expect(pool.head()?.number).toBe(number)
  })
})

test('a node that lags by 50 blocks is not asked for what it does not have', async () => {
  const pool = await open(overHttp([0, 1, 1]))
  await chain.mine(50, chain.nodes.slice(1))
  const best = await chain.height(chain.nodes[1]!)
  await waitFor('the lag is seen', () => pool.status()[0]?.lag === 50)
  expect(stateOf(pool, 0)).toBe('degraded')
  const heights = await Promise.all(Array.from({ length: 100 }, () => height(pool)))
  expect(new Set(heights)).toEqual(new Set([best]))
  // Even when the others are gone, it does not answer for a block that it has not reached.
  await Promise.all(chain.nodes.slice(1).map((node) => node.kill()))
  expect(await blockNumber(pool, best)).toEqual({ failure: 'NO_UPSTREAM' })
  expect(pool.head()?.number).toBe(best)
  expect(await height(pool)).toBe(best - 50)
  await chain.restart(1, chain.nodes[0])
  await chain.restart(2, chain.nodes[0])
  await chain.mine(50)
})

test('an upstream that changes its chain is out at the next probe', async () => {
  const pool = await open(overHttp())
  await chain.nodes[0]!.call('anvil_setChainId', [99])
  await waitFor('it is seen', () => stateOf(pool, 0) === 'wrong_chain')
  await chain.nodes[0]!.call('anvil_setChainId', [31337])
  await waitFor('it is back', () => stateOf(pool, 0) === 'healthy')
})

test('a transaction goes to all nodes, and is not lost by being known', async () => {
  const pool = await open(overHttp())
  const account = privateKeyToAccount(
    '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
  )
  const sign = (nonce: number) =>
    account.signTransaction({
      chainId: 31337,
      nonce,
      to: account.address,
      value: 1n,
      gas: 21_000n,
      gasPrice: 10_000_000_000n,
    })
  const raw = JSON.stringify(await sign(0))
  const sent = await pool.broadcast(raw)
  expect(sent).toMatchObject({ ok: true })
  const hash = JSON.parse((sent as { result: string }).result)
  await waitFor('every node has it', async () => {
    const found = await Promise.all(
      chain.nodes.map((node) => node.call('eth_getTransactionByHash', [hash])),
    )
    return found.every((transaction) => transaction !== null)
  })
  expect(await pool.broadcast(raw)).toEqual(sent)
  await chain.mine()
  // Mined: the nodes say that the nonce is too low, and know the transaction all the same.
  expect(await pool.broadcast(raw)).toEqual(sent)
  const other = { ...(await pool.broadcast(JSON.stringify(await sign(0).then(otherValue)))) }
  expect(other).toMatchObject({ ok: false })
  expect(JSON.stringify(other)).toMatch(/nonce|signature|decode|funds/i)

  async function otherValue() {
    return account.signTransaction({
      chainId: 31337,
      nonce: 0,
      to: account.address,
      value: 2n,
      gas: 21_000n,
      gasPrice: 10_000_000_000n,
    })
  }
})

test('state that one node does not have is found at another', async () => {
  const pruned = await startAnvil({ timestamp: 1_700_000_000, args: ['--no-mining'] })
  try {
    await chain.copy(chain.nodes[0]!, pruned, { withHistory: false })
    const pool = await open([
      { url: pruned.url, name: 'pruned' },
      { url: chain.nodes[0]!.url, name: 'full', priority: 1 },
    ])
    const [first, second] = pool.status()
    expect(first!.capabilities).not.toContain('archive')
    expect(second!.capabilities).toContain('archive')
    const outcome = await pool.request({
      method: 'eth_getBalance',
      params: '["0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266","0x5"]',
      idempotent: true,
    })
    expect(outcome).toMatchObject({ ok: true })
  } finally {
    await pruned.kill()
  }
})

describe('the header hash', () => {
  test.each(['istanbul', 'berlin', 'london', 'paris', 'shanghai', 'cancun', 'prague'])(
    'is right for %s',
    async (hardfork) => {
      let node: Anvil | undefined
      try {
        node = await startAnvil({ args: ['--hardfork', hardfork] })
        await node.call('anvil_mine', ['0x2'])
        for (const number of ['0x1', '0x2']) {
          const block = await node.call<Record<string, unknown>>('eth_getBlockByNumber', [
            number,
            false,
          ])
          expect(checkBlock(block)).toBe('ok')
          expect(checkBlock({ ...block, parentHash: `0x${'1'.repeat(64)}` })).toBe('bad')
        }
      } finally {
        await node?.kill()
      }
    },
  )
})
