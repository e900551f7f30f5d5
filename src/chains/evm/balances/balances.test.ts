import { describe, expect, it } from 'vitest'
import { BlockGoneError, ChainUnavailableError } from '../../chain.ts'
import { createEvmChain } from '../chain.ts'
import { encodeCall } from '../codec/abi.ts'
import { bytesOf } from '../codec/raw.ts'
import { evmFamily } from '../family.ts'
import { addressOf, stubChain, wordOf } from '../testing/stub-chain.ts'
import { createStubPool, type StubNode } from '../testing/stub-pool.ts'

const never = new AbortController().signal
const blocks = stubChain([[], [], []])
const [bad, good, holder] = [0xbad, 0x900d, 0xa].map(addressOf) as [string, string, string]
const head = { number: 2, hash: bytesOf(blocks[2]!.block.hash) }
const old = { number: 1, hash: bytesOf(blocks[1]!.block.hash) }

const erc20 = (contract: string) => ({
  address: bytesOf(holder),
  asset: {
    asset_type: 'ASSET_TYPE_ERC20' as const,
    contract_address: bytesOf(contract),
    token_id: 0n,
  },
})
const erc721 = (contract: string) => ({
  address: bytesOf(holder),
  asset: {
    asset_type: 'ASSET_TYPE_ERC721' as const,
    contract_address: bytesOf(contract),
    token_id: 1n,
  },
})
const coin = { address: bytesOf(holder), asset: evmFamily.native }

type Call = { to: string; data: string }
type Refuse = NonNullable<StubNode['refuse']>

/** A node with a token that answers, and another one as the test says. */
const node = (refuse: Refuse = () => undefined): StubNode => ({
  blocks,
  refuse,
  answer: (method, [call]) => {
    if (method === 'eth_getBalance') return '0x7'
    if (method === 'eth_getCode') return '0x60'
    return (call as Call).to === good || (call as Call).to === bad ? wordOf(5) : '0x'
  },
})
const isCallOf = (contract: string, method: string, params: readonly unknown[]) =>
  method === 'eth_call' && (params[0] as Call).to === contract

/** Refuses every call of the bad token. */
const refusing =
  (error: object): Refuse =>
  (method, params) =>
    isCallOf(bad, method, params) ? error : undefined

const read = (nodes: StubNode[], at = head, queries = [erc20(bad), erc20(good), coin]) =>
  createEvmChain({ pool: createStubPool(nodes) }).readBalances(queries, at, never)
const balances = async (...given: Parameters<typeof read>) =>
  (await read(...given)).map(({ balance }) => balance)

describe('a token that fails', () => {
  it.each([
    'stack limit reached 1024 (1023)',
    'gas uint64 overflow',
    'return data out of bounds',
    'write protection',
    'out of gas',
    'header not found',
    'missing trie node 00 (path )',
    'the node is syncing, try again: execution timed out',
    'hash 0x00 is not currently canonical',
    'something that no node has said before',
  ])('as "%s" is unreadable, and the others are read', async (message) => {
    const error = { code: -32000, message }
    expect(await balances([node(refusing(error))])).toEqual([null, 5n, 7n])
    expect(await balances([node(refusing(error)), node(refusing(error))])).toEqual([null, 5n, 7n])
  })

  it('is read where one node can read it', async () => {
    const error = { code: -32000, message: 'stack limit reached 1024 (1023)' }
    expect(await balances([node(refusing(error)), node()])).toEqual([5n, 5n, 7n])
  })

  it('costs no further question when it reverts', async () => {
    const pool = createStubPool([node(refusing({ code: 3, message: 'rate limit, try again' }))])
    const chain = createEvmChain({ pool })
    const readings = await chain.readBalances([erc20(bad), erc20(good), coin], head, never)
    expect(readings.map(({ balance }) => balance)).toEqual([null, 5n, 7n])
    expect(pool.methods.toSorted()).toEqual([
      'eth_call',
      'eth_call',
      'eth_getBalance',
      'eth_getCode',
    ])
  })

  it('holds nothing where there is no contract', async () => {
    const gone = {
      ...node(),
      answer: (method: string) => (method === 'eth_getBalance' ? '0x7' : '0x'),
    }
    expect(await balances([gone])).toEqual([0n, 0n, 7n])
  })

  it('has no owner of an item only if it answers other questions', async () => {
    const owner = encodeCall('ownerOf(uint256)', 1n)
    const noItem: Refuse = (method, params) =>
      isCallOf(bad, method, params) && (params[0] as Call).data === owner
        ? { code: 3, message: 'execution reverted' }
        : undefined
    const supports: StubNode = {
      ...node(noItem),
      answer: (method) => (method === 'eth_getBalance' ? '0x7' : wordOf(1)),
    }
    expect(await balances([supports], head, [erc721(bad), coin])).toEqual([0n, 7n])
    const silent = node(refusing({ code: 3, message: 'execution reverted' }))
    expect(await balances([silent], head, [erc721(bad), coin])).toEqual([null, 7n])
  })
})

describe('a block that nodes refuse', () => {
  const all =
    (message: string, at?: typeof head): Refuse =>
    (method, params) => {
      const block = params[1] as { blockHash?: string } | undefined
      const isAsked = !at || block?.blockHash === `0x${at.hash.toString('hex')}`
      return ['eth_call', 'eth_getBalance'].includes(method) && isAsked
        ? { code: -32000, message }
        : undefined
    }

  it.each(['header not found', 'hash 0x00 is not currently canonical', 'what is that'])(
    'with "%s" is read from another node',
    async (message) => {
      expect(await balances([node(all(message)), node()])).toEqual([5n, 5n, 7n])
    },
  )

  it('is not an error of a token', async () => {
    await expect(read([node(all('execution aborted'))])).rejects.toThrow(ChainUnavailableError)
    await expect(read([node(all('execution aborted'))], head, [erc20(bad)])).rejects.toThrow(
      ChainUnavailableError,
    )
  })

  it('is pruned when the state of the newest block is available, whatever the error text', async () => {
    await expect(read([node(all('try again later', old))], old)).rejects.toThrow(BlockGoneError)
    await expect(read([node(all('try again later'))], old)).rejects.toThrow(ChainUnavailableError)
  })
})
