import { setTimeout as delay } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { type Anvil, startAnvil } from '../../../devnet/anvil/anvil.ts'
import { type Chain, type ChainBlock, ChainUnavailableError } from '../../../src/chains/chain.ts'
import { createEvmChain } from '../../../src/chains/evm/chain.ts'
import { createPool } from '../../../src/chains/evm/pool/pool.ts'
import { createByteSet } from '../../../src/lib/bytes.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { silentLog } from '../../../src/lib/log.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { largeTrace } from './hostile-contracts.ts'

const never = new AbortController().signal

// A quarter of the usual limit and of the trace that exceeds it: an emulated node takes seconds to write 50 MB.
const maxReplyBytes = 8 * 1024 * 1024
const calls = 25

const startSetup = async (urlOf: (anvil: Anvil) => string) => {
  const anvil = await startAnvil({ args: ['--no-mining'] })
  onTestFinished(() => anvil.stop())
  const pool = createPool({
    network: 'test',
    prefix: 'eth',
    upstreams: [{ url: urlOf(anvil) }],
    clock: systemClock,
    log: silentLog,
    limits: { probeIntervalMs: 100, maxReplyBytes },
  })
  onTestFinished(() => pool.stop())
  const chain = createEvmChain({ pool, pollMs: 100 })
  onTestFinished(() => chain.stop())
  await waitFor('the node is explored', () => pool.can('debug_trace'))
  const [from, to, other] = (await anvil.call<string[]>('eth_accounts')) as [string, string, string]
  const before = await chain.head(never)
  const gas = '0x100000'
  await anvil.call('eth_sendTransaction', [
    { from, data: largeTrace(to, calls), value: '0x7', gas },
  ])
  await anvil.call('eth_sendTransaction', [{ from: other, to, value: '0x5', gas }])
  await anvil.call('evm_mine')
  await anvil.call('eth_sendTransaction', [{ from: other, to, value: '0x6', gas }])
  await anvil.call('evm_mine')
  const received = ({ decode }: ChainBlock) => {
    const accounts = createByteSet([Buffer.from(to.slice(2), 'hex')])
    const tracked = { accounts, contracts: createByteSet([]), tokenAccount: () => [] }
    return decode(tracked).movements.map(({ value }) => value)
  }
  return { anvil, pool, chain, before, received }
}

const take = async (chain: Chain, after: Parameters<Chain['follow']>[0], count: number) => {
  const taken: ChainBlock[] = []
  for await (const event of chain.follow(after, AbortSignal.timeout(120_000))) {
    if (event.kind !== 'blocks') throw new Error(event.kind)
    taken.push(...event.blocks)
    if (taken.length >= count) break
  }
  return taken
}

/** A node on a slow machine needs its time to come back; the tracker begins again then, too. */
const takeWithTroubles = async (...args: Parameters<typeof take>): Promise<ChainBlock[]> => {
  const end = Date.now() + 90_000
  for (;;)
    try {
      return await take(...args)
    } catch (error) {
      if (Date.now() > end || !(error instanceof ChainUnavailableError)) throw error
      await delay(1_000)
    }
}

it('the trace of a transaction that is made to be too large is read without what makes it large', async () => {
  const { pool, chain, before, received, anvil } = await startSetup(({ url }) => url)
  const receipt = await anvil.call<{ transactions: string[]; hash: string }>(
    'eth_getBlockByNumber',
    [`0x${(before.number + 1).toString(16)}`, false],
  )
  const blocks = await take(chain, before, 2)
  expect(blocks.map(received)).toEqual([[7n, 5n], [6n]])
  expect(blocks.map(({ lacks }) => lacks)).toEqual([undefined, undefined])
  const asking = {
    method: 'debug_traceBlockByHash',
    params: JSON.stringify([receipt.hash, { tracer: 'callTracer' }]),
    idempotent: true,
  }
  // A request for all of it is refused, and the node's health does not suffer. On a slow machine the node
  // may be unreachable for a moment after it wrote so much.
  const state = () => pool.status()[0]?.state
  const failures: unknown[] = []
  for (let turn = 0; turn < 3 && !failures.includes('REPLY_TOO_LARGE'); turn++) {
    await waitFor('the node is healthy', () => state() === 'healthy')
    const outcome = await pool.request(asking)
    failures.push('failure' in outcome ? outcome.failure : outcome)
  }
  expect(failures).toContain('REPLY_TOO_LARGE')
  expect(failures.every((failure) => typeof failure === 'string')).toBe(true)
  await waitFor('the node is healthy', () => state() === 'healthy')
  // Probes may time out while anvil writes so much; the replies themselves do not count.
  expect(pool.status()[0]!.error_rate).toBeLessThan(0.5)
}, 120_000)

it('over a WebSocket it is read in the same way', async () => {
  const { chain, before, received } = await startSetup(({ wsUrl }) => wsUrl)
  const blocks = await takeWithTroubles(chain, before, 2)
  expect(blocks.map(received)).toEqual([[7n, 5n], [6n]])
  expect(blocks.map(({ lacks }) => lacks)).toEqual([undefined, undefined])
}, 150_000)
