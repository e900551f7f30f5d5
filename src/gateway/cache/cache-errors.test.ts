import { describe, expect, it } from 'vitest'
import type { Head, PoolOutcome } from '../../chains/evm/pool/pool-types.ts'
import { createNetwork } from '../network.ts'
import type { Answer } from '../rpc/answer.ts'
import { createMethods } from '../rpc/methods.ts'
import { createFakePool } from '../testing/fake-pool.ts'
import { createStillCanonical } from '../testing/still-canonical.ts'

// Every method that may be kept, against every way in which a node can fail: what comes after the node
// has recovered is its answer, and never what was made of the error.

const hash = (number: number) => `0x${number.toString(16).padStart(64, '0')}`
const head = (number: number): Head => ({
  number,
  hash: hash(number),
  parent_hash: hash(number - 1),
  timestamp: number,
})
const address = `0x${'a'.repeat(40)}`
const allowed = [
  'evm_chainId',
  'evm_getBlockReceipts',
  'evm_feeHistory',
  'evm_getProof',
  'web3_sha3',
]
const { list } = createMethods({ prefix: 'eth', allowed })

const block = `{"number":"0x60","hash":"${hash(96)}","parentHash":"${hash(95)}"}`
const inBlock = `{"blockNumber":"0x60","blockHash":"${hash(96)}","contractAddress":null,"hash":"${hash(5)}"}`

/** For each method the ways to ask it, and a good answer. */
const asked: Record<string, [args: unknown[][], result: string]> = {
  web3_clientVersion: [[[]], '"x"'],
  net_version: [[[]], '"1"'],
  net_peerCount: [[[]], '"0x5"'],
  net_listening: [[[]], 'true'],
  eth_protocolVersion: [[[]], '"0x41"'],
  eth_syncing: [[[]], 'false'],
  eth_gasPrice: [[[]], '"0x5"'],
  eth_getBalance: [
    [
      [address, 'latest'],
      [address, '0x60'],
      [address, hash(96)],
    ],
    '"0x5"',
  ],
  eth_getStorageAt: [
    [
      [address, '0x0', 'latest'],
      [address, '0x0', '0x60'],
    ],
    `"${hash(5)}"`,
  ],
  eth_getTransactionCount: [
    [
      [address, 'latest'],
      [address, '0x1'],
    ],
    '"0x5"',
  ],
  eth_getBlockTransactionCountByHash: [[[hash(96)]], '"0x5"'],
  eth_getBlockTransactionCountByNumber: [[['latest'], ['0x60']], '"0x5"'],
  eth_getUncleCountByBlockHash: [[[hash(96)]], '"0x1"'],
  eth_getUncleCountByBlockNumber: [[['latest'], ['0x60'], ['pending']], '"0x1"'],
  eth_getCode: [
    [
      [address, 'latest'],
      [address, '0x60'],
    ],
    '"0x60"',
  ],
  eth_call: [[[{ to: address }], [{ to: address }, '0x60'], [{ to: address }, 'latest']], '"0x5"'],
  eth_estimateGas: [[[{ to: address }], [{ to: address }, '0x60']], '"0x5"'],
  eth_getBlockByHash: [[[hash(96), false]], block],
  eth_getBlockByNumber: [[['0x60', false]], block],
  eth_getTransactionByHash: [[[hash(5)]], inBlock],
  eth_getTransactionByBlockHashAndIndex: [[[hash(96), '0x0']], inBlock],
  eth_getTransactionByBlockNumberAndIndex: [[['0x60', '0x0']], inBlock],
  eth_getTransactionReceipt: [[[hash(5)]], inBlock],
  eth_getUncleByBlockHashAndIndex: [[[hash(96), '0x0']], block],
  eth_getUncleByBlockNumberAndIndex: [[['0x60', '0x0']], block],
  eth_getLogs: [
    [
      [{}],
      [{ fromBlock: '0x1', toBlock: '0x60' }],
      [{ fromBlock: '0x1', toBlock: 'latest' }],
      [{ fromBlock: '0x5f', toBlock: '0x70' }],
      [{ blockHash: hash(96) }],
      [{ blockHash: hash(96), topics: [null] }],
      [{ fromBlock: '0x1', toBlock: 'safe' }],
      [{ fromBlock: '0x70' }],
    ],
    `[{"blockNumber":"0x60","blockHash":"${hash(96)}","topics":["${hash(1)}"]}]`,
  ],
  eth_chainId: [[[]], '"0x1"'],
  eth_getBlockReceipts: [[['0x60']], `[${inBlock}]`],
  eth_feeHistory: [[['0x1', 'latest', []]], '{}'],
  eth_getProof: [[[address, [], 'latest']], '{}'],
  web3_sha3: [[['0x']], `"${hash(1)}"`],
}
// The head is in memory; the others do not ask nodes, or are never joined nor kept.
const others = /blockNumber$|sendRaw|[fF]ilter|ubscribe$/
const kept = /net_version|chainId|gasPrice|get(?!Proof)|eth_call/

const errors: [code: number, message: string][] = [
  [-32000, 'header not found'],
  [-32000, 'unknown block'],
  [-32000, 'missing block data'],
  [-32000, 'block not found'],
  [-32602, 'block range extends beyond current head block'],
  [-32602, 'BlockOutOfRangeError: block height is 5 but requested was 9'],
  [-32001, 'Resource not found'],
  [-32001, 'block not found: 0x60'],
  [-32000, 'missing trie node 5f (path )'],
  [4444, 'pruned history unavailable'],
  [-32000, 'query returned more than 10000 results'],
  [-32005, 'Requested range exceeds maximum RPC range limit'],
  [-32602, 'invalid block range params'],
  [-32601, 'Method not found'],
  [-32602, 'data did not match any variant of untagged enum EthRpcCall'],
  [-32002, 'node is syncing'],
  [-32603, 'internal error'],
  [3, 'execution reverted: block not found'],
]

const failing: PoolOutcome[] = [
  ...errors.map(([code, message]) => ({
    ok: false as const,
    error: JSON.stringify({ code, message }),
  })),
  { ok: true, result: 'null' },
  { failure: 'TIMEOUT' },
  { failure: 'NO_UPSTREAM' },
]

const open = () => {
  const pool = createFakePool({ upstreams: 2 })
  pool.best = head(96)
  let time = 1_000_000
  const network = createNetwork({
    chain: 'c',
    network: 'm',
    prefix: 'eth',
    pool,
    canonical: createStillCanonical(pool, { now: () => time, finalityDepth: 10 }),
    allowedMethods: allowed,
    cacheBytes: 1_000_000,
    maxLogRange: 1000,
    timeoutMs: 1000,
    now: () => time,
    spill: () => {},
  })
  const session = network.sessionOf({
    credential_id: 'k',
    organization_id: 'o',
    role: 'ROLE_MEMBER',
  })
  const call = (method: string, args: unknown[]) =>
    new Promise<Answer>((resolve) =>
      network.call(
        { id: '1', method, params: JSON.stringify(args), args, refusal: undefined },
        session,
        resolve,
      ),
    )
  return {
    pool,
    call,
    stop: network.stop,
    rest: () => {
      time += 10_000
    },
  }
}

it('knows every method', () => {
  const names = list.map(({ name }) => name).filter((name) => !others.test(name))
  expect(names.toSorted()).toEqual(Object.keys(asked).toSorted())
})

describe.each(Object.entries(asked))('%s', (method, [ways, result]) => {
  it('keeps nothing that was made of an error', async () => {
    for (const args of ways)
      for (const outcome of failing) {
        const { pool, call, stop, rest } = open()
        const what = `${JSON.stringify(args)} ${JSON.stringify(outcome)}`
        const resolvesTags = (request: { method: string }) =>
          method === 'eth_getLogs' && request.method === 'eth_getBlockByNumber'
        pool.answer = (request) =>
          resolvesTags(request) ? { ok: true, result: '{"number":"0x60"}' } : outcome
        const broken = await call(method, args)
        if (method === 'eth_getLogs') expect(broken.text, what).not.toBe('[]')
        rest()
        pool.answer = (request) =>
          resolvesTags(request) ? { ok: true, result: '{"number":"0x60"}' } : { ok: true, result }
        const sound = await call(method, args)
        expect(sound.hit, what).not.toBe(true)
        expect(sound, what).toMatchObject({ ok: true, text: result })
        stop()
      }
  })
})

it('accepts valid data: otherwise the tests above could not fail', async () => {
  for (const [method, [ways, result]] of Object.entries(asked)) {
    if (!kept.test(method)) continue
    const { pool, call, stop } = open()
    pool.answer = () => ({ ok: true, result })
    await call(method, ways[method === 'eth_getLogs' ? 1 : 0] as unknown[])
    const again = await call(method, ways[method === 'eth_getLogs' ? 1 : 0] as unknown[])
    expect(again, method).toMatchObject({ hit: true, text: result })
    stop()
  }
})
