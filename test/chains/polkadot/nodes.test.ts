import { describe, expect, it, onTestFinished } from 'vitest'
import { executeBlock } from '../../../devnet/polkadot/author.ts'
import type { PolkadotDevChainOptions } from '../../../devnet/polkadot/node.ts'
import {
  type BlockRef,
  type Chain,
  type ChainEvent,
  ChainUnavailableError,
} from '../../../src/chains/chain.ts'
import type { PolkadotChainOptions } from '../../../src/chains/polkadot/chain.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { contentOf, followTo, type Harness, never, refOf, startHarness } from './harness.ts'

const unit = 10n ** 12n

const start = async (options: PolkadotDevChainOptions = {}) => {
  const node = await startHarness(options)
  onTestFinished(node.stop)
  return node
}
const open = (node: Harness, options: Partial<PolkadotChainOptions> = {}) => {
  const chain = node.openChain({ probeEveryMs: 200, requestTimeoutMs: 2_000, ...options })
  onTestFinished(chain.stop)
  return chain
}
/** Follows until something comes, or the first failure. */
const followOnce = async (chain: Chain, after: BlockRef) => {
  for await (const event of chain.follow(after, AbortSignal.timeout(30_000))) return event
  return undefined
}
const begin = (node: Harness) => refOf(node.chain.final())
const isGapless = (node: Harness, blocks: readonly { number: number; hash: Buffer }[]) =>
  blocks.every((block) => node.chain.at(block.number)?.hash === `0x${block.hash.toString('hex')}`)

describe('the nodes of Asset Hub', () => {
  it('never shows what was on a branch that did not become final', async () => {
    const node = await start({ finality: 3 })
    node.mine(4)
    const chain = open(node)
    const first = begin(node)
    // One transfer is on the branch that loses, the other on the one that wins.
    const [lost, won] = [node.pay(1, 50, unit), node.pay(2, 50, 2n * unit)]
    node.make({ extrinsics: [lost] })
    node.mine(1)
    node.fork(2, [won])
    node.mine(4)
    const { number } = node.chain.final()
    const blocks = await followTo(chain, first, number)
    expect(blocks).toHaveLength(number - first.number)
    expect(isGapless(node, blocks)).toBe(true)
    const all = [1, 2, 50].map(node.account)
    const values = blocks.flatMap((block) => contentOf(block, all).movements)
    expect(values.map(({ value }) => value)).toEqual([2n * unit])
    const query = [{ address: node.account(50), asset: chain.native }]
    const [reading] = await chain.readBalances(query, refOf(node.chain.final()), never)
    expect(reading!.balance).toBe(2n * unit)
  })

  it('continues with another node when one dies, and with the same one when it is back', async () => {
    const node = await start()
    node.mine(3)
    const second = await node.serve()
    const chain = open(node, { upstreams: [{ url: node.node_url }, { url: second.url }] })
    const first = begin(node)
    const following = followTo(chain, first, first.number + 60, 60_000)
    const mineTo = async (count: number) => {
      for (let left = count; left > 0; left--) {
        node.mine(1)
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    await mineTo(20)
    node.server.setMode('down')
    await mineTo(20)
    node.server.setMode('up')
    second.setMode('down')
    await mineTo(10)
    second.setMode('up')
    await mineTo(10)
    const blocks = await following
    expect(blocks.map(({ number }) => number)).toEqual(
      Array.from({ length: 60 }, (_, at) => first.number + 1 + at),
    )
    expect(isGapless(node, blocks)).toBe(true)
  })

  it('subscribes again after a connection broke', async () => {
    const node = await start()
    node.mine(3)
    // Without probes only a subscription can report a block in time.
    const chain = open(node, { probeEveryMs: 600_000, pollMs: 600_000 })
    await chain.head(never)
    for (let round = 0; round < 3; round++) {
      const first = begin(node)
      const following = followTo(chain, first, first.number + 1)
      node.server.dropConnections()
      await waitFor('the node is there again', () => {
        const { upstreams } = chain.status!()
        return upstreams?.[0]?.state === 'healthy'
      })
      node.mine(1)
      expect((await following)[0]!.number).toBe(first.number + 1)
    }
  })

  it('does not wait for a node that hangs while another one answers', async () => {
    const node = await start()
    node.mine(3)
    const second = await node.serve()
    const upstreams = [{ url: node.node_url }, { url: second.url, priority: 1 }]
    const chain = open(node, { upstreams, requestTimeoutMs: 500, probeEveryMs: 100 })
    await chain.head(never)
    node.server.setMode('hanging')
    node.mine(5)
    await waitFor('the second node reports the blocks', async () => {
      const head = await chain.head(never).catch(() => undefined)
      return head?.number === node.chain.final().number
    })
  })

  it('asks the node that has old states for them, and the nearest one for new ones', async () => {
    const node = await start()
    node.mine(40)
    const archive = await node.serve()
    node.server.prune(30)
    const chain = open(node, {
      upstreams: [{ url: node.node_url }, { url: archive.url, priority: 10, archive: true }],
    })
    const blocks = await followTo(chain, refOf(node.chain.at(5)!), 40)
    expect(blocks).toHaveLength(35)
    const query = [{ address: node.account(1), asset: chain.native }]
    const readings = await chain.readBalances(query, refOf(node.chain.at(3)!), never)
    expect(readings[0]!.balance).toBe(10n ** 24n)
  })

  it('names a gap when no node has the states any more, and continues after it', async () => {
    const node = await start()
    node.mine(40)
    node.server.prune(30)
    const chain = open(node, { patienceMs: 100 })
    const events: ChainEvent[] = []
    const after = refOf(node.chain.at(5)!)
    for await (const event of chain.follow(after, AbortSignal.timeout(30_000))) {
      events.push(event)
      if (event.kind === 'blocks' && event.blocks.at(-1)!.number === 40) break
    }
    const [gap, ...rest] = events
    expect(gap).toEqual({
      kind: 'gap',
      from: 6,
      to: refOf(node.chain.at(29)!),
      reason: expect.stringContaining('discarded'),
    })
    const numbers = rest.flatMap((event) => (event.kind === 'blocks' ? event.blocks : []))
    expect(numbers.map(({ number }) => number)).toEqual(
      Array.from({ length: 11 }, (_, at) => 30 + at),
    )
    const query = [{ address: node.account(1), asset: chain.native }]
    await expect(chain.readBalances(query, after, never)).rejects.toThrow('discarded')
  })

  it('reports no gap while a node that may have the states is unreachable', async () => {
    const node = await start()
    node.mine(40)
    node.server.prune(30)
    const archive = await node.serve()
    archive.setMode('down')
    const chain = open(node, {
      patienceMs: 0,
      upstreams: [{ url: node.node_url }, { url: archive.url, priority: 10 }],
    })
    const following = followTo(chain, refOf(node.chain.at(5)!), 40, 60_000)
    await waitFor('the other node is called', () => {
      const { upstreams } = chain.status!()
      return upstreams?.[0]?.state === 'healthy'
    })
    archive.setMode('up')
    expect(await following).toHaveLength(35)
  })

  it('never uses a node of another chain', async () => {
    const [node, foreign] = [await start(), await start({ seed: 5 })]
    node.mine(3)
    foreign.mine(30)
    const chain = open(node, {
      genesis: node.genesis_hash,
      upstreams: [{ url: foreign.node_url }, { url: node.node_url, priority: 1 }],
    })
    expect(await chain.identity(never)).toBe(`polkadot:${node.genesis_hash.slice(2)}`)
    expect((await chain.head(never)).number).toBe(3)
    await waitFor('it is noticed', () => {
      const { upstreams } = chain.status!()
      return upstreams?.[0]?.state === 'wrong_chain'
    })
  })

  it('does not take a block whose header is not that of its hash, nor half an answer', async () => {
    const node = await start()
    node.mine(10)
    const honest = await node.serve()
    const lies: Record<string, (result: unknown) => unknown> = {
      chain_getBlock: (result) => {
        const copy = structuredClone(result) as { block: { header: { stateRoot: string } } }
        copy.block.header.stateRoot = `0x${'11'.repeat(32)}`
        return copy
      },
      state_queryStorageAt: () => [{ block: '0x', changes: [] }],
      chain_getBlockHash: () => '0x1234',
    }
    for (const [method, lie] of Object.entries(lies)) {
      node.server.tamper((asked, result) => (asked === method && armed ? lie(result) : undefined))
      let armed = false
      const chain = open(node, { upstreams: [{ url: node.node_url }, { url: honest.url }] })
      await waitFor('both nodes are there', () => {
        const { upstreams } = chain.status!()
        return upstreams!.every(({ state }) => state === 'healthy')
      })
      armed = true
      const blocks = await followTo(chain, refOf(node.chain.at(2)!), 10)
      expect(blocks).toHaveLength(8)
      expect(isGapless(node, blocks)).toBe(true)
    }
  })

  it('says that the chain left a position only when no node has it', async () => {
    const node = await start()
    node.mine(10)
    const other = { number: 5, hash: Buffer.alloc(32, 7) }
    const chain = open(node)
    const events: ChainEvent[] = []
    for await (const event of chain.follow(other, AbortSignal.timeout(30_000))) events.push(event)
    expect(events).toEqual([{ kind: 'fork' }])
  })

  it('reads blocks before, at and after a runtime upgrade, each by its own runtime', async () => {
    const node = await start({ upgradeAt: 6 })
    const asked: string[] = []
    node.server.tamper((method) => void asked.push(method))
    const chain = open(node)
    const first = begin(node)
    for (let round = 0; round < 12; round++) {
      const parent = node.chain.best()
      const made = node.make({ extrinsics: [node.pay(1, 50, unit + BigInt(round))] })
      executeBlock(node.chain.codeOf(parent.state), parent, made)
    }
    const versionAt = (number: number) =>
      node.chain.codeOf(node.chain.stateOf(node.chain.at(number)!)!).version.specVersion
    expect([versionAt(5), versionAt(6)]).toEqual([900, 901])
    const blocks = await followTo(chain, first, 12)
    const values = blocks.flatMap((block) => contentOf(block, [node.account(50)]).movements)
    expect(values.map(({ value }) => value - unit)).toEqual(
      Array.from({ length: 12 }, (_, at) => BigInt(at)),
    )
    expect(asked.filter((method) => method === 'state_getMetadata')).toHaveLength(2)
    const query = [{ address: node.account(50), asset: chain.native }]
    for (const number of [5, 6, 7, 12]) {
      const [reading] = await chain.readBalances(query, refOf(node.chain.at(number)!), never)
      const sum = values.slice(0, number).reduce((total, { value }) => total + value, 0n)
      expect(reading!.balance).toBe(sum)
    }
  })

  it('reports that all nodes are unreachable, though no block is awaited', async () => {
    const node = await start()
    node.mine(3)
    const chain = open(node, { waitMs: 500 })
    const following = followOnce(chain, begin(node))
    node.server.setMode('down')
    await expect(following).rejects.toThrow(ChainUnavailableError)
  })

  it('asks three things a block, whatever is tracked', async () => {
    const node = await start()
    node.mine(5)
    // With a known prefix nothing is asked but what blocks need.
    const chain = open(node, { probeEveryMs: 600_000, ss58_prefix: 2 })
    await followTo(chain, refOf(node.chain.at(2)!), 5)
    const asked: string[] = []
    node.server.tamper((method) => void asked.push(method))
    node.mine(20)
    await followTo(chain, refOf(node.chain.at(5)!), 25)
    // What is asked now and then, whether or not there are blocks, is left out.
    const forBlocks = asked.filter((method) => method !== 'chain_getFinalizedHead')
    const counts = Object.fromEntries(
      Object.entries(Object.groupBy(forBlocks, (method) => method)).map(([method, all]) => [
        method,
        all!.length,
      ]),
    )
    expect(counts).toEqual({
      // One more looks whether the position is still on the chain.
      chain_getBlockHash: 21,
      chain_getBlock: 20,
      state_queryStorageAt: 20,
    })
  })
})
