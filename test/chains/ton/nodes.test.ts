import { afterAll, expect, it } from 'vitest'
import { compileContracts } from '../../../devnet/ton/compile.ts'
import codes from '../../../devnet/ton/contracts/contract-code.json' with { type: 'json' }
import { startTonDevChain } from '../../../devnet/ton/ton-dev-chain.ts'
import { type ChainBlock, ChainUnavailableError, type Tracked } from '../../../src/chains/chain.ts'
import { createTonChain } from '../../../src/chains/ton/chain.ts'
import { createByteSet } from '../../../src/lib/bytes.ts'
import { addressOf, createPayer, fundPayers } from './ton-payers.ts'

const never = new AbortController().signal
const dev = await startTonDevChain({ blockTimeMs: 0, startTime: 1_800_000_000, retention: 100 })
afterAll(dev.stop)
const payer = createPayer(dev, 1)
await fundPayers(dev, [payer])
const tracked: Tracked = {
  accounts: createByteSet([payer.bytes]),
  contracts: createByteSet([]),
  tokenAccount: () => [],
}
const next = async (
  chain: ReturnType<typeof createTonChain>,
  after: Parameters<typeof chain.follow>[0],
) => {
  for await (const event of chain.follow(after, AbortSignal.timeout(30_000))) return event
  throw new Error('nothing came')
}

it('a node of another network is never used', async () => {
  const other = await startTonDevChain({ blockTimeMs: 0, seed: 2 })
  await other.mine(50)
  const chain = createTonChain({ upstreams: [{ url: dev.node_url }, { url: other.node_url }] })
  try {
    const identity = await chain.identity(never)
    for (let time = 0; time < 3; time++) {
      await chain.head(never)
      expect(await chain.identity(never)).toBe(identity)
    }
    const wrong = createTonChain({ upstreams: [{ url: dev.node_url }], globalId: -239 })
    await expect(wrong.head(never)).rejects.toThrow(ChainUnavailableError)
    await wrong.stop()
  } finally {
    await chain.stop()
    await other.stop()
  }
})

it('a transaction that is not the one of its hash is refused, and another node is asked', async () => {
  const liar = await dev.addEndpoint()
  liar.faults.add({ kind: 'wrong_hash' })
  const upstreams = [{ url: liar.node_url }, { url: dev.node_url, priority: 1 }]
  const chain = createTonChain({ upstreams, pollMs: 20 })
  try {
    const before = await chain.head(never)
    await payer.pay(addressOf(Buffer.alloc(33, 0)), 5n)
    await dev.mine(1)
    const read = async (): Promise<ChainBlock> => {
      const event = await next(chain, before)
      if (event.kind !== 'blocks') throw new Error(event.kind)
      return event.blocks[0]!
    }
    const lied = await read()
    expect(() => lied.decode(tracked)).toThrow(ChainUnavailableError)
    const { movements } = (await read()).decode(tracked)
    expect(movements).toMatchObject([{ value: 5n, only: 'from' }])
  } finally {
    await chain.stop()
  }
})

it('blocks that no node has any more are a gap, and following continues after it', async () => {
  const chain = createTonChain({ upstreams: [{ url: dev.node_url }], patienceMs: 0, pollMs: 20 })
  try {
    const from = await chain.head(never)
    await dev.mine(256 * 2 - from.number)
    const event = await next(chain, from)
    // The first one that is left cannot be distinguished from its predecessor's shard blocks.
    expect(event).toMatchObject({ kind: 'gap', from: from.number + 1, to: { number: 412 } })
    if (event.kind !== 'gap') throw new Error(event.kind)
    expect(await next(chain, event.to)).toMatchObject({ kind: 'blocks' })
  } finally {
    await chain.stop()
  }
}, 60_000)

it('a jetton wallet that fails has no balance, and does not affect others', async () => {
  const chain = createTonChain({ upstreams: [{ url: dev.node_url }] })
  const token = { ...chain.native, contract_address: Buffer.alloc(33, 1) }
  // A contract without the method that is asked for.
  const failing = { address: payer.bytes, asset: token, token_account_address: payer.bytes }
  const sound = { address: payer.bytes, asset: chain.native }
  try {
    const at = await chain.head(never)
    const balance = dev.chain.account(payer.text).balance
    const block_number = at.number
    expect(await chain.readBalances([sound, failing, sound], at, never)).toEqual([
      { balance, block_number },
      { balance: null, block_number },
      { balance, block_number },
    ])
  } finally {
    await chain.stop()
  }
})

it('the contracts of the development chain are those of their sources', async () => {
  expect(await compileContracts()).toEqual(codes)
}, 120_000)
