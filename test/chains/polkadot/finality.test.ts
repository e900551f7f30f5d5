// Finality by the relay chain: justifications, changes of the authorities, and the head of the parachain.
import { expect, it, onTestFinished } from 'vitest'
import { fromHex, readUint, storageKey } from '../../../devnet/polkadot/bytes.ts'
import { type ProofOptions, startRelay } from '../../../devnet/polkadot/relay.ts'
import { ChainUnavailableError } from '../../../src/chains/chain.ts'
import type { BlockName } from '../../../src/chains/polkadot/grandpa.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { followTo, never, refOf, startHarness } from './harness.ts'

/** A parachain of one node and its relay chain. */
const start = async () => {
  const node = await startHarness()
  onTestFinished(node.stop)
  const stored = node.chain.best().state.get(storageKey('ParachainInfo', 'ParachainId'))!
  const paraId = Number(readUint(stored))
  const relay = await startRelay({ para_id: paraId, head: node.chain.best().header })
  onTestFinished(relay.stop)
  /** Makes blocks of the parachain, and a relay block with the last one as its head. */
  const include = (count: number, options?: { changesSet?: boolean }) => {
    node.mine(count)
    return relay.make(node.chain.best().header, options)
  }
  const open = (trusted?: BlockName, clock = systemClock) => {
    const chain = node.openChain({
      verification: 'full',
      relay: [{ url: relay.url }],
      paraId,
      ...(trusted && { trusted }),
      clock,
      probeEveryMs: 100,
    })
    onTestFinished(chain.stop)
    return { chain, verification: () => chain.status!().verification! }
  }
  return { node, relay, include, open }
}

it('proves blocks by the relay chain, through changes of its authorities', async () => {
  const { node, relay, include, open } = await start()
  const trusted = relay.newest()
  const first = refOf(node.chain.best())
  include(2)
  include(1, { changesSet: true })
  include(3)
  include(1, { changesSet: true })
  include(2)
  const { chain, verification } = open(trusted)
  const blocks = await followTo(chain, first, node.chain.best().number)
  expect(blocks.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
  expect(verification()).toMatchObject({
    mode: 'full',
    anchor: 'relay block 0',
    checked: { justifications: 3, authority_sets: 2 },
    refused: {},
  })
  expect(verification().checked.final_blocks).toBeGreaterThanOrEqual(9)

  // At the head, and from a block without trust.
  include(1)
  await followTo(chain, blocks.at(-1)!, node.chain.best().number)
  const untrusted = open()
  include(1)
  await followTo(untrusted.chain, first, node.chain.best().number)
  expect(untrusted.verification().anchor).toMatch(/^relay block \d+, as a node said$/)
})

const falseProofs: [name: string, options: ProofOptions][] = [
  ['too few votes', { voters: 2 }],
  ['votes of other authorities', { set: 9 }],
  ['votes for another set', { setId: 5 }],
]

it('refuses false justifications, names them, and continues with true ones', async () => {
  const { node, relay, include, open } = await start()
  const trusted = relay.newest()
  const first = refOf(node.chain.best())
  include(1)
  for (const [name, options] of falseProofs) {
    const { chain, verification } = open(trusted)
    relay.tamper((method) =>
      method === 'grandpa_proveFinality' ? relay.prove(relay.newest().number, options) : undefined,
    )
    const following = followTo(chain, first, node.chain.best().number)
    await waitFor(name, () => (verification().refused.justifications ?? 0) > 0)
    expect(verification().last_refusal, name).toMatch(
      /^the justification for relay block 1: block 1 has \d of 4 votes of set 0$/,
    )
    expect(verification().checked.final_blocks, name).toBeUndefined()
    // Votes for a block after it count, with its header.
    relay.tamper((method) =>
      method === 'grandpa_proveFinality'
        ? relay.prove(relay.newest().number, { isDescendant: true })
        : undefined,
    )
    expect(await following, name).toHaveLength(1)
    await chain.stop()
  }
})

it('refuses a block that the relay chain has not made final, and a false head of the parachain', async () => {
  const { node, relay, include, open } = await start()
  const trusted = relay.newest()
  const first = refOf(node.chain.best())
  include(2)
  const honest = node.chain.best().hash
  const { chain, verification } = open(trusted)
  node.server.tamper((method, result) =>
    method === 'chain_getBlockHash' && result === honest ? `0x${'ab'.repeat(32)}` : undefined,
  )
  const following = followTo(chain, first, 2)
  await waitFor('a refusal', () => (verification().refused.finality ?? 0) > 0)
  expect(verification().last_refusal).toBe(
    'block 2 is not the one that the relay chain has made final',
  )
  node.server.tamper(undefined)
  expect(await following).toHaveLength(2)

  // The head in the state of the relay chain is proven.
  const other = open(trusted)
  relay.tamper((method, result) => {
    if (method !== 'state_getReadProof') return undefined
    const { at, proof } = result as { at: string; proof: string[] }
    return {
      at,
      proof: proof.map((one) => {
        const bytes = fromHex(one)
        bytes[bytes.length - 1]! ^= 1
        return `0x${bytes.toString('hex')}`
      }),
    }
  })
  await waitFor('a refusal', async () => {
    await other.chain.block(2, {}, AbortSignal.timeout(2_000)).catch(() => {})
    return (other.verification().refused.states ?? 0) > 0
  })
})

it('waits for the relay chain, and reports a block that it does not have', async () => {
  const { node, relay, include, open } = await start()
  const trusted = relay.newest()
  include(1)
  let skipped = 0
  const clock = {
    now: () => Date.now() + skipped,
    sleep: async (ms: number, signal?: AbortSignal) => {
      if (ms === 1_000) skipped += ms
      await systemClock.sleep(ms === 1_000 ? 1 : ms, signal)
    },
  }
  const { chain } = open(trusted, clock)
  node.mine(1)
  await expect(chain.block(2, {}, never)).rejects.toThrow(ChainUnavailableError)
  await expect(chain.block(2, {}, never)).rejects.toThrow('does not have block 2 yet')
  relay.make(node.chain.best().header)
  await waitFor('the block', async () =>
    chain.block(2, {}, never).then(
      () => true,
      () => false,
    ),
  )
})

it('begins at a block whose state is pruned, where it changes the authorities', async () => {
  const { node, relay, include, open } = await start()
  const first = refOf(node.chain.best())
  const other = include(1)
  include(1, { changesSet: true })
  const trusted = include(1, { changesSet: true })
  include(1)
  include(1, { changesSet: true })
  include(1)
  relay.prune(relay.newest().number)
  const { chain, verification } = open(trusted)
  expect(await followTo(chain, first, 6)).toHaveLength(6)
  expect(verification()).toMatchObject({
    anchor: `relay block ${trusted.number}`,
    checked: { justifications: 2, authority_sets: 1 },
    refused: {},
  })
  const { chain: stuck } = open(other)
  await expect(stuck.block(1, {}, never)).rejects.toThrow('trust a newer one')
})
