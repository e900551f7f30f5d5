import { Address, internal } from '@ton/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { jettonTransfer } from '../../../devnet/ton/jetton.ts'
import { startTonDevChain } from '../../../devnet/ton/ton-dev-chain.ts'
import type { BalanceQuery, BlockRef } from '../../../src/chains/chain.ts'
import { createTonChain } from '../../../src/chains/ton/chain.ts'
import type { UpstreamOptions } from '../../../src/chains/ton/toncenter.ts'
import { type RecordingNode, startRecordingNode } from './recording-node.ts'
import { bytesOf, createPayer, fundPayers } from './ton-payers.ts'

const never = new AbortController().signal
const dev = await startTonDevChain({ blockTimeMs: 0, startTime: 1_800_000_000, rounds: 'random' })
const node = await startRecordingNode(dev.node_url)
const payer = createPayer(dev, 1)
await fundPayers(dev, [payer])
const jetton = await dev.deployJetton()
const receivers = Array.from({ length: 110 }, (_, number) => {
  const hash = Buffer.alloc(32, 7)
  hash.writeUInt8((number * 2) % 256, 0)
  hash.writeUInt8(number, 31)
  return new Address(0, hash)
})
const owners = receivers.slice(0, 12)
/** The contract that runs in every block of a real masterchain; here it has to be paid. */
const everyBlock = new Address(-1, Buffer.alloc(32, 0x55))

const native = {
  asset_type: 'ASSET_TYPE_T' as const,
  contract_address: Buffer.alloc(0),
  token_id: 0n,
}
const token = { ...native, contract_address: bytesOf(jetton.master) }
const queries: BalanceQuery[] = [
  ...receivers.map((address) => ({ address: bytesOf(address), asset: native })),
  // Was never there, and one of the masterchain.
  { address: bytesOf(new Address(0, Buffer.alloc(32, 0xee))), asset: native },
  { address: bytesOf(everyBlock), asset: native },
  ...receivers.slice(0, 13).map((owner) => ({
    ...{ address: bytesOf(owner), asset: token },
    token_account_address: bytesOf(jetton.holderOf(owner)),
  })),
]

/** What the chain itself says. */
const truth = async (at: number): Promise<bigint[]> =>
  await Promise.all(
    queries.map(async ({ address, token_account_address }) => {
      const text = (bytes: Buffer) =>
        new Address(bytes.readInt8(0), bytes.subarray(1)).toRawString()
      const { balance, data } = dev.chain.account(text(token_account_address ?? address), at)
      return token_account_address ? (data?.beginParse().loadCoins() ?? 0n) : balance
    }),
  )

const payAll = async (some: readonly Address[], value: bigint) => {
  for (let from = 0; from < some.length; from += 100)
    await payer.send(
      ...some.slice(from, from + 100).map((to) => internal({ to, value, bounce: false })),
      internal({ to: everyBlock, value: 10_000_000n, bounce: false }),
    )
  const { last_lt } = dev.chain.account(everyBlock.toRawString())
  while (dev.chain.account(everyBlock.toRawString()).last_lt === last_lt) await dev.mine(1)
  await dev.mine(2)
}

beforeAll(async () => {
  for (const owner of owners) await jetton.mint(owner, 100n)
  await payAll(receivers, 50_000_000n)
  await jetton.mint(payer.address, 1_000n)
  await dev.mine(2)
})
afterAll(async () => {
  await node.stop()
  await dev.stop()
})

/** Reads all balances through a chain of its own, and says what was asked meanwhile. */
const read = async (
  at: BlockRef | undefined,
  options: Partial<UpstreamOptions> = {},
  change?: RecordingNode['change'],
  isTwice = false,
) => {
  const upstreams = [{ url: node.node_url, ...options }]
  const chain = createTonChain({ upstreams, indexTimeoutMs: 60_000 })
  try {
    node.change = change
    const block = at ?? (await chain.head(never))
    node.asked.length = 0
    const readings = await chain.readBalances(queries, block, never)
    expect(readings.map(({ balance }) => balance)).toEqual(await truth(block.number))
    expect(readings.every(({ block_number }) => block_number === block.number)).toBe(true)
    const count = (name: string) => node.asked.filter((asked) => asked === name).length
    const again = async () => {
      node.asked.length = 0
      await chain.readBalances(queries, block, never)
      return node.asked.filter((asked) => asked.startsWith('v3/')).length
    }
    const shown = chain.status!().upstreams ?? []
    return {
      states: count('v3/accountStates'),
      byV3: node.asked.filter((asked) => asked.startsWith('v3/')).length,
      singly: count('v2/getAddressInformation') + count('v2/runGetMethod'),
      upstream: shown[0],
      again: change || isTwice ? await again() : undefined,
    }
  } finally {
    node.change = undefined
    await chain.stop()
  }
}

const refOf = ({ seqno, root_hash }: { seqno: number; root_hash: Buffer }): BlockRef => ({
  number: seqno,
  hash: root_hash,
})

describe('balances through API v3', () => {
  it('come a hundred at a time', async () => {
    const seen = await read(undefined)
    expect(seen.states).toBe(2)
    // One that is not there, a jetton wallet that is not there, and how new the answer has to be.
    expect(seen.singly).toBe(3)
    expect(seen.upstream).toMatchObject({ v3: { state: 'ready', last_failure: '' } })
  })

  it('are those of the block, where accounts have moved on since', async () => {
    const old = refOf(dev.chain.head().id)
    await payAll(receivers.slice(0, 20), 1_000_000n)
    await payer.send(
      jettonTransfer({
        holder: jetton.holderOf(payer.address),
        to: owners[0]!,
        amount: 5n,
        excessTo: null,
      }),
    )
    await dev.mine(4)
    const seen = await read(old)
    expect(seen.states).toBe(2)
    expect(seen.singly).toBeGreaterThanOrEqual(24)
    expect(seen.singly).toBeLessThan(40)
  })

  it('are those of the block through splits and merges', async () => {
    const blocks: BlockRef[] = []
    for (const depth of [1, 2, 1, 0]) {
      dev.chain.setDepth(depth)
      await payAll(receivers.slice(depth * 10, depth * 10 + 15), 1_000_000n)
      blocks.push(refOf(dev.chain.head().id))
    }
    for (const block of blocks) expect((await read(block)).states).toBe(2)
  }, 180_000)

  it.each([
    ['is behind', () => dev.faults.add({ kind: 'lag', method: 'accountStates', blocks: 9 })],
    ['has not got the block', () => dev.faults.add({ kind: 'lag', method: 'blocks', blocks: 1 })],
    ['fails', () => dev.faults.add({ kind: '500', method: 'v3' })],
    ['fails at the jettons', () => dev.faults.add({ kind: '500', method: 'jetton/wallets' })],
    ['breaks off', () => dev.faults.add({ kind: 'reset', method: 'v3' })],
    ['has had enough', () => dev.faults.add({ kind: '429', method: 'accountStates', times: 1 })],
  ])('are read by API v2 where an index %s', async (_, harm) => {
    await payAll(receivers.slice(0, 5), 1_000_000n)
    harm()
    try {
      const { singly, upstream } = await read(undefined)
      expect(singly).toBeGreaterThan(10)
      expect(upstream).toMatchObject({ state: 'healthy' })
    } finally {
      dev.faults.clear()
    }
  })

  it('are read by API v2 where there is no v3, which is asked for once', async () => {
    dev.faults.add({ kind: '404', method: 'v3' })
    try {
      const seen = await read(undefined, {}, undefined, true)
      expect(seen).toMatchObject({ byV3: 1, again: 0, upstream: { v3: { state: 'absent' } } })
    } finally {
      dev.faults.clear()
    }
    expect(await read(undefined, { v3: false })).toMatchObject({ byV3: 0, upstream: { v3: null } })
  })

  it('are never those of another chain', async () => {
    const other = await startTonDevChain({ blockTimeMs: 0, seed: 2 })
    await other.mine(dev.chain.head().id.seqno)
    try {
      const v3_url = other.node_url.replace('/v2', '/v3')
      const { upstream, singly } = await read(undefined, { v3_url })
      expect(upstream).toMatchObject({
        state: 'healthy',
        v3: { state: 'paused', last_failure: 'has another chain' },
      })
      expect(singly).toBe(queries.length)
    } finally {
      await other.stop()
    }
  })

  it.each<[string, RecordingNode['change']]>([
    [
      'numbers in the place of texts',
      (_, { accounts, ...rest }) => ({
        ...rest,
        ...(Array.isArray(accounts) && {
          accounts: accounts.map((account) => ({ ...account, balance: 7 })),
        }),
      }),
    ],
    ['nothing', () => ({})],
    ['a list', () => []],
  ])('are read by API v2 where an index gives %s', async (_, change) => {
    const { singly, again } = await read(undefined, {}, change)
    expect(singly).toBeGreaterThanOrEqual(queries.length)
    // Left alone, or tried a last time.
    expect(again).toBeLessThan(2)
  })

  it('of jettons count only for the owner and the token that were proved', async () => {
    const { singly } = await read(undefined, {}, (path, answer) =>
      path === 'jetton/wallets'
        ? {
            jetton_wallets: (answer.jetton_wallets as object[]).map((wallet) => ({
              ...wallet,
              ...{ balance: '999999', owner: `0:${'AB'.repeat(32)}` },
            })),
          }
        : answer,
    )
    expect(singly).toBeGreaterThanOrEqual(13)
  })
})

describe('API v3 of the development chain', () => {
  const get = async (path: string) => {
    const response = await fetch(`${dev.node_url.replace('/v2', '/v3')}/${path}`)
    return { status: response.status, json: await response.json() }
  }

  it('shows blocks, accounts and jetton wallets as the real server does', async () => {
    const [owner, account] = [owners[1]!, jetton.holderOf(owners[1]!)]
    const upper = (address: Address) => address.toRawString().toUpperCase()
    const { json: info } = await get('masterchainInfo')
    expect(info.last).toMatchObject({
      ...{ workchain: -1, shard: '8000000000000000', global_id: -3 },
      root_hash: expect.stringMatching(/^[0-9A-Za-z+/]{43}=$/),
      end_lt: expect.stringMatching(/^\d+$/),
    })
    const state = await get(`accountStates?address=${owner}&include_boc=false&whatever=1`)
    expect(state.json.accounts).toEqual([
      {
        address: upper(owner),
        account_state_hash: expect.any(String),
        balance: String(dev.chain.account(owner.toRawString()).balance),
        extra_currencies: {},
        status: 'uninit',
        last_transaction_hash: expect.stringMatching(/^[0-9A-Za-z+/]{43}=$/),
        last_transaction_lt: expect.stringMatching(/^\d+$/),
        contract_methods: null,
        interfaces: null,
      },
    ])
    for (const asked of [
      `address=${account}`,
      `owner_address=${owner}`,
      `owner_address=${owner}&jetton_address=${jetton.master.toRawString()}`,
    ])
      expect((await get(`jetton/wallets?${asked}`)).json.jetton_wallets).toMatchObject([
        {
          ...{ address: upper(account), owner: upper(owner), jetton: upper(jetton.master) },
          ...{ balance: '100', last_transaction_lt: expect.stringMatching(/^\d+$/) },
        },
      ])
    expect((await get(`accountStates?address=0:${'00'.repeat(32)}`)).json.accounts).toEqual([])
  })

  it.each([
    ['accountStates', 422],
    ['accountStates?address=nonsense', 422],
    ['blocks?workchain=-1&shard=nonsense', 422],
    ['blocks?workchain=-1&shard=8000000000000000&limit=1001', 422],
    ['blocks?workchain=-1&shard=8000000000000000&sort=up', 422],
    ['transactions?hash=nonsense', 422],
    [`jetton/wallets?jetton_address=0:${'01'.repeat(32)}&jetton_address=0:${'02'.repeat(32)}`, 422],
    ['masterchainBlockShardState?seqno=99999999', 404],
    ['nothing', 404],
  ])('refuses %s with %s', async (path, status) => {
    const answer = await get(path)
    expect(answer.status).toBe(status)
    expect(answer.json).toEqual({ error: expect.any(String) })
  })
})
