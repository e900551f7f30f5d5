import { afterAll, expect, it } from 'vitest'
import { startTonDevChain } from '../../../devnet/ton/ton-dev-chain.ts'
import type { BlockHeader, ChainEvent, Position } from '../../../src/chains/chain.ts'
import { createTonChain } from '../../../src/chains/ton/chain.ts'
import { waitFor } from '../../helpers/wait-for.ts'

const never = new AbortController().signal
const dev = await startTonDevChain({ blockTimeMs: 0, startTime: 1_800_000_000 })
afterAll(dev.stop)
await dev.mine(3)

type TonChain = ReturnType<typeof createTonChain>

/** Follows in one call to a block; an error of following ends the test. */
const followTo = async (chain: TonChain, after: Position, number: () => number) => {
  const numbers: number[] = []
  const gaps: Extract<ChainEvent, { kind: 'gap' }>[] = []
  for await (const event of chain.follow(after, AbortSignal.timeout(120_000))) {
    if (event.kind === 'fork') throw new Error('fork')
    if (event.kind === 'gap') gaps.push(event)
    else numbers.push(...event.blocks.map((block) => block.number))
    if (numbers.length > 0 && numbers.at(-1)! >= number()) break
  }
  return { numbers, gaps }
}
const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at)
const head = () => dev.chain.head().id.seqno

it('blocks below the history of a pruned node come from another one, else they are a gap', async () => {
  const pruned = await dev.addEndpoint({ server: 'python' })
  const begin: BlockHeader = await (async () => {
    const chain = createTonChain({ upstreams: [{ url: dev.node_url }] })
    const found = await chain.head(never)
    await chain.stop()
    return found
  })()
  await dev.mine(160)
  pruned.faults.add({ kind: 'pruned', blocks: 50 })
  const alone = createTonChain({ upstreams: [{ url: pruned.node_url }], patienceMs: 0 })
  const { numbers, gaps } = await followTo(alone, begin, head)
  // Of the oldest block that is left, the shard blocks before are gone.
  expect(gaps).toMatchObject([{ from: begin.number + 1, to: { number: head() - 49 } }])
  expect(gaps[0]!.reason).toMatch(/not in db/)
  expect(numbers).toEqual(range(head() - 48, head()))
  await alone.stop()
  const both = createTonChain({
    upstreams: [{ url: pruned.node_url }, { url: dev.node_url, priority: 1 }],
  })
  const whole = await followTo(both, begin, head)
  expect(whole).toEqual({ numbers: range(begin.number + 1, head()), gaps: [] })
  await both.stop()
}, 120_000)

it.for([
  { perSecond: 1, blocks: 2 },
  { perSecond: 10, blocks: 12 },
])(
  'a plan of $perSecond calls a second is kept, and makes following late only',
  { timeout: 120_000 },
  async ({ perSecond, blocks }) => {
    const { node_url, requests } = await dev.addEndpoint({ requestsPerSecond: perSecond })
    const chain = createTonChain({
      upstreams: [{ url: node_url, requests_per_second: perSecond, v3: false }],
      pollMs: 20,
    })
    const begin = await chain.head(never)
    await dev.mine(blocks)
    const { numbers } = await followTo(chain, begin, head)
    expect(numbers).toEqual(range(begin.number + 1, head()))
    expect(requests().refused).toBe(0)
    await chain.stop()
  },
)

it('a plan that is not configured makes following late, and does not end it', async () => {
  const { node_url, requests } = await dev.addEndpoint({ requestsPerSecond: 5 })
  const chain = createTonChain({ upstreams: [{ url: node_url, v3: false }], pollMs: 20 })
  const begin = await chain.head(never)
  await dev.mine(6)
  const { numbers } = await followTo(chain, begin, head)
  expect(numbers).toEqual(range(begin.number + 1, head()))
  expect(requests().refused).toBeGreaterThan(0)
  await chain.stop()
}, 120_000)

it('servers behind one address that are seconds apart do not end following', async () => {
  const balanced = await dev.addEndpoint()
  balanced.faults.add({ kind: 'lag', blocks: 8, probability: 0.5 })
  const chain = createTonChain({ upstreams: [{ url: balanced.node_url, v3: false }], pollMs: 50 })
  const begin = await chain.head(never)
  const last = head() + 12
  let making = true
  // A block for every few requests: the follower meets both servers between two blocks, at any speed of the machine.
  const made = (async () => {
    while (making && head() < last + 8) {
      await dev.mine(1)
      const next = balanced.requests().admitted + 8
      await waitFor('the follower asks', () => !making || balanced.requests().admitted >= next)
    }
  })()
  const { numbers, gaps } = await followTo(chain, begin, () => last)
  expect(gaps).toEqual([])
  expect(numbers.slice(0, last - begin.number)).toEqual(range(begin.number + 1, last))
  making = false
  await made
  await chain.stop()
}, 120_000)
