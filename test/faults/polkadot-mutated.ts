import { storageKey } from '../../devnet/polkadot/bytes.ts'
import type { ChainBlock, Movement } from '../../src/chains/chain.ts'
import type { BalanceEvent } from '../../src/chains/polkadot/balance-event.ts'
import { createBlock } from '../../src/chains/polkadot/block.ts'
import { type Codecs, createCodecs } from '../../src/chains/polkadot/codecs.ts'
import { createPolkadotFamily } from '../../src/chains/polkadot/family.ts'
import { wholeExtrinsics } from '../../src/chains/polkadot/fetch.ts'
import { ScaleError } from '../../src/chains/polkadot/scale.ts'
import { createByteSet } from '../../src/lib/bytes.ts'
import { startHarness } from '../chains/polkadot/harness.ts'
import { testRuntimes } from '../chains/polkadot/runtimes.ts'
import { createRandom } from '../helpers/random.ts'
import { readNumbers } from './program.ts'

/** What a run came to. */
export type MutatedOutcome = Record<'blocks' | 'decoded' | 'gaps' | 'kept' | 'slowest_ms', number>

type World = { codecs: Codecs; events: Buffer; extrinsics: string[]; accounts: Buffer[] }

const unit = 10n ** 12n
const native = createPolkadotFamily().native

/** A block of each runtime, with transfers, a batch, a failure and what the chain does by itself. */
async function makeWorlds(): Promise<World[]> {
  const worlds: World[] = []
  for (const { spec } of testRuntimes()) {
    const node = await startHarness({ ...(spec && { spec }) })
    node.mine(2)
    node.make({ extrinsics: [node.pay(1, 50, unit)] })
    const calls = { calls: [node.inner(53, unit), node.inner(54, 2n * unit)] }
    const made = node.make({
      extrinsics: [
        ...Array.from({ length: 20 }, (_, at) => node.pay(9, 60 + at, unit + BigInt(at), at)),
        node.signed(3, 'Utility', 'batch_all', calls),
        node.pay(6, 56, 10n ** 30n),
      ],
    })
    const { metadata } = node.chain.codeOf(made.state)
    worlds.push({
      codecs: createCodecs(metadata),
      events: Buffer.from(made.state.get(storageKey('System', 'Events'))!),
      extrinsics: made.extrinsics.map((one) => `0x${Buffer.from(one).toString('hex')}`),
      accounts: Array.from({ length: 100 }, (_, number) => node.account(number)),
    })
    await node.stop()
  }
  return worlds
}

const blockOf = (
  { codecs, extrinsics }: World,
  bytes: Buffer,
  events: readonly BalanceEvent[],
): ChainBlock =>
  createBlock({
    ...{ number: 5, hash: Buffer.alloc(32, 9), parent_hash: Buffer.alloc(32, 8), time: 0, native },
    ...{ extrinsics, events },
    outline: () => codecs.outlineEvents(bytes),
  })

const recordsOf = ({ accounts }: World, block: ChainBlock): readonly Movement[] =>
  block.decode({
    accounts: createByteSet(accounts),
    contracts: createByteSet([]),
    tokenAccount: () => [],
  }).movements

/** As a block is read: whole, or up to where its events cannot be decoded. */
function read(world: World, bytes: Buffer): { block: ChainBlock; isWhole: boolean } {
  const found: BalanceEvent[] = []
  try {
    return { block: blockOf(world, bytes, world.codecs.readEvents(bytes, found)), isWhole: true }
  } catch (error) {
    if (!(error instanceof ScaleError)) throw error
    const events = wholeExtrinsics(found, world.extrinsics.length)
    return { block: blockOf(world, bytes, events), isWhole: false }
  }
}

function mutate(bytes: Buffer, random: () => number): { bytes: Buffer; at: number } {
  const pick = (below: number) => Math.floor(random() * below)
  const at = pick(bytes.length)
  const rest = (from: number) => bytes.subarray(Math.min(from, bytes.length))
  const some = Buffer.from(Array.from({ length: 1 + pick(8) }, () => pick(256)))
  switch (pick(5)) {
    case 0:
      return { at, bytes: Buffer.concat([bytes.subarray(0, at), some, rest(at + some.length)]) }
    case 1:
      return { at, bytes: Buffer.concat([bytes.subarray(0, at), some, rest(at)]) }
    case 2:
      return { at, bytes: Buffer.concat([bytes.subarray(0, at), rest(at + some.length)]) }
    case 3:
      return { at, bytes: bytes.subarray(0, at) }
    default: {
      const copy = Buffer.from(bytes)
      copy[at] = copy[at]! ^ (1 << pick(8))
      return { at, bytes: copy }
    }
  }
}

/** Reads damaged blocks. Each must be read or become a gap, and keep what is before the damage. */
export async function runMutated({
  blocks,
  seed,
}: {
  blocks: number
  seed: number
}): Promise<MutatedOutcome> {
  const random = createRandom(seed)
  const worlds = await makeWorlds()
  const outcome: MutatedOutcome = { blocks: 0, decoded: 0, gaps: 0, kept: 0, slowest_ms: 0 }
  for (; outcome.blocks < blocks; outcome.blocks++) {
    const world = worlds[outcome.blocks % worlds.length]!
    const { bytes, at } = mutate(world.events, random)
    const begun = performance.now()
    const { block, isWhole } = read(world, bytes)
    const records = recordsOf(world, block)
    outcome.slowest_ms = Math.max(outcome.slowest_ms, performance.now() - begun)
    outcome[isWhole ? 'decoded' : 'gaps']++
    // The count of the events comes first: damage there leaves nothing certain.
    if (at < 4) continue
    const keys = new Set(records.map(textOf))
    for (const record of untouched(world, at)) {
      if (!keys.has(textOf(record)))
        throw new Error(`block ${outcome.blocks}: ${textOf(record)} is lost, damage at ${at}`)
      outcome.kept++
    }
  }
  return outcome
}

const textOf = ({ ordinal, from, to, value, transaction_fee }: Movement): string =>
  [ordinal, from.toString('hex'), to.toString('hex'), value, transaction_fee].join()

/** The records of the extrinsics that end before a byte, in the block as it was. */
function untouched(world: World, at: number): readonly Movement[] {
  const found: BalanceEvent[] = []
  try {
    // All events that are whole before the damage.
    world.codecs.readEvents(world.events.subarray(0, at), found)
  } catch (error) {
    if (!(error instanceof ScaleError)) throw error
  }
  const events = wholeExtrinsics(found, world.extrinsics.length)
  return recordsOf(world, blockOf(world, world.events, events))
}

if (import.meta.main) console.log(await runMutated(readNumbers({ blocks: 10_000, seed: 1 })))
