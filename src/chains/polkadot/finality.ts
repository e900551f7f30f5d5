// Proves that blocks of a parachain are final (`verification: full` with nodes of the relay chain). The authorities of
// the relay chain sign its blocks (GRANDPA). The state of such a block holds the head of the parachain, and the head names the
// blocks before it by their hashes. Changes of the authorities are followed from a trusted block on.

import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { BlockMissingError, ChainUnavailableError } from '../chain.ts'
import { NodeFault } from '../nodes/fault.ts'
import { createShared } from '../nodes/shared.ts'
import type { VerificationCounts } from '../verification.ts'
import {
  type AuthoritySet,
  type BlockName,
  findSetId,
  headOf,
  nextSet,
  readProof,
  readSet,
  verifyJustification,
} from './grandpa.ts'
import { bytesOf, isHash, type RawHeader } from './header.ts'
import { authoritiesKey, oldAuthoritiesKey, paraHeadKey, setIdKey } from './keys.ts'
import { askHeader, type PolkadotNodes } from './nodes.ts'
import { readCompact, ScaleError, skipCompact } from './scale.ts'
import { readProvenStorage } from './storage.ts'

/** Which blocks are final, by proof. */
export type Finality = {
  /**
   * The hash of the final block of this number. Waits for a while until the relay chain has it. Undefined for
   * blocks far below the head: the proven block at the end of catching up proves them by its links.
   */
  hashAt(number: number, signal: AbortSignal): Promise<string | undefined>
  /** From where on authorities are followed; null before the first proof. */
  anchor(): string | null
  stop(): Promise<void>
}

/** Blocks further below the proven head are not walked to. */
const window = 1_024
const pollMs = 1_000
const patienceMs = 60_000

/** Starts without authorities: they are read when the first block is asked for. */
export function createFinality(options: {
  nodes: PolkadotNodes
  relay: PolkadotNodes
  counts: VerificationCounts
  clock: Clock
  log: Log
  /** The number of the parachain. */
  paraId: number
  /** A relay chain block, from whose state the authorities are taken. */
  trusted?: BlockName | undefined
}): Finality {
  const { nodes, relay, counts, clock, log, trusted } = options
  const headKey = paraHeadKey(options.paraId)
  let anchor: string | null = null
  /** The last relay block that is proven, and who votes on those after it. */
  let known: { block: BlockName; set: AuthoritySet } | undefined
  /** Proven hashes of the parachain. */
  const proven = new Map<number, string>()
  let head: BlockName | undefined
  /** How far the walk from the head has come: the lowest block, and the hash of the one before it. */
  let lowest: { number: number; parentHash: string } | undefined

  const headerOf = (block: BlockName, signal: AbortSignal) => askHeader(relay, block, signal)
  const provenState = async (block: BlockName, keys: string[], root: string, signal: AbortSignal) =>
    await readProvenStorage(relay, { keys, block, root, counts }, signal)

  /** The authorities after a block by its state. */
  const setInState = async (block: BlockName, root: string, signal: AbortSignal) => {
    const keys = [setIdKey, authoritiesKey, oldAuthoritiesKey]
    const values = await provenState(block, keys, root, signal)
    const id = values.get(setIdKey)
    const [list, old] = [values.get(authoritiesKey), values.get(oldAuthoritiesKey)]
    const found = list ?? old
    if (!id || !found)
      throw new ChainUnavailableError(`relay block ${block.number} has no authorities`)
    showHead(await headIn(block, root, signal))
    return readSet(bytesOf(id), bytesOf(found), { hasVersion: !list })
  }
  const begin = async (signal: AbortSignal) => {
    await relay.set.identity(signal)
    const block = trusted ?? (await newestRelay(relay, log, signal))
    const header = await headerOf(block, signal)
    const set = await setInState(block, header.stateRoot, signal).catch((error: unknown) => {
      if (!(error instanceof BlockMissingError)) throw error
      return setInHeader(relay, block, header, signal)
    })
    anchor = `relay block ${block.number}${trusted ? '' : ', as a node said'}`
    return { block, set }
  }

  /** The newest block that the set proves; undefined where it proves no newer one. */
  const proveNext = async (
    { block, set }: NonNullable<typeof known>,
    signal: AbortSignal,
  ): Promise<BlockName | undefined> => {
    const next = block.number + 1
    if (next > relay.set.best()) return undefined
    const target = await relay.ask({
      method: 'grandpa_proveFinality',
      params: [next],
      reached: next,
      signal,
      accept: (result): BlockName | 'none' => {
        // A node without a justification of the block has one later.
        if (result === null) return 'none'
        try {
          return verifyJustification(readProof(result as string), set)
        } catch (error) {
          if (!(error instanceof ScaleError)) throw error
          const reason = `the justification for relay block ${next}: ${error.message}`
          counts.refuse('justifications', reason)
          throw new NodeFault('invalid', reason)
        }
      },
    })
    return target !== 'none' && target.number > block.number ? target : undefined
  }

  /** The head of the parachain in the state of a relay block. */
  const headIn = async (
    block: BlockName,
    root: string,
    signal: AbortSignal,
  ): Promise<BlockName> => {
    const value = (await provenState(block, [headKey], root, signal)).get(headKey)
    if (!value)
      throw new ChainUnavailableError(
        `relay block ${block.number} has no parachain ${options.paraId}`,
      )
    const bytes = bytesOf(value)
    const begin = skipCompact(bytes, 0)
    return headOf(bytes.subarray(begin, begin + readCompact(bytes, 0)))
  }

  const showHead = (found: BlockName): void => {
    if (head && found.number <= head.number) return
    head = found
    lowest = undefined
    // The bound of the map: twice the window below the head.
    for (const number of proven.keys())
      if (number < found.number - 2 * window) proven.delete(number)
  }
  const advance = createShared(async (signal) => {
    known ??= await begin(signal)
    for (;;) {
      const target = await proveNext(known, signal)
      if (!target) return
      const { stateRoot, digest } = await headerOf(target, signal)
      const set = nextSet(digest.logs, known.set)
      // The last block of a set is followed by those of the next one.
      const isLast = !set || target.number >= relay.set.best()
      if (isLast) showHead(await headIn(target, stateRoot, signal))
      counts.check('justifications')
      if (set) counts.check('authority_sets')
      known = { block: target, set: set ?? known.set }
      if (isLast) return
    }
  })

  /** Walks from the head down to a number, by the hashes that headers name. */
  const walkTo = async (number: number, signal: AbortSignal): Promise<void> => {
    for (;;) {
      const from = head!
      lowest ??= { number: from.number + 1, parentHash: from.hash }
      const { number: above, parentHash } = lowest
      if (above <= number) return
      const block = { number: above - 1, hash: parentHash }
      proven.set(block.number, block.hash)
      if (proven.has(number)) return
      const { parentHash: before } = await askHeader(nodes, block, signal)
      // Unless a newer head was shown meanwhile: then the walk begins again at that one.
      if (head === from) lowest = { number: block.number, parentHash: before }
    }
  }
  let walking: Promise<void> = Promise.resolve()

  return {
    hashAt: async (number, signal) => {
      const until = clock.now() + patienceMs
      while (!head || head.number < number) {
        await advance(signal)
        if (head && head.number >= number) break
        if (clock.now() + pollMs > until)
          throw new ChainUnavailableError(`the relay chain does not have block ${number} yet`)
        await clock.sleep(pollMs, signal)
      }
      if (head.number - number > window) {
        counts.check('linked_only')
        return undefined
      }
      if (!proven.has(number)) {
        // One walk after the other: they begin at the same head.
        const walk = walking.catch(() => {}).then(() => walkTo(number, signal))
        walking = walk
        await walk
      }
      counts.check('final_blocks')
      return proven.get(number)!
    },
    anchor: () => anchor,
    stop: relay.stop,
  }
}

/** The newest block of a relay node, where no block is trusted. */
async function newestRelay(
  relay: PolkadotNodes,
  log: Log,
  signal: AbortSignal,
): Promise<BlockName> {
  const hash = await relay.ask({
    method: 'chain_getFinalizedHead',
    params: [],
    signal,
    accept: (result) => (isHash(result) ? result : undefined),
  })
  const number = await relay.ask({
    method: 'chain_getHeader',
    params: [hash],
    signal,
    accept: (result) => Number((result as RawHeader).number),
  })
  log.warn({ block: number }, 'authorities of the relay chain taken from a node without proof')
  return { number, hash }
}

/** The authorities after a block by its header, where nodes have pruned the state: the number of the set is in its votes. */
async function setInHeader(
  relay: PolkadotNodes,
  block: BlockName,
  { digest }: RawHeader,
  signal: AbortSignal,
): Promise<AuthoritySet> {
  const set = nextSet(digest.logs, { id: 0n, weights: new Map() })
  if (!set)
    throw new ChainUnavailableError(
      `nodes of the relay chain have pruned block ${block.number}: trust a newer one, or one that changes the authorities`,
    )
  const newest = await relay.ask({
    method: 'state_getStorage',
    params: [setIdKey],
    signal,
    accept: (result) => bytesOf(result as string).readBigUInt64LE(0),
  })
  const id = await relay.ask({
    method: 'grandpa_proveFinality',
    params: [block.number + 1],
    reached: block.number + 1,
    signal,
    accept: (result) => findSetId(readProof(result as string), set.weights, newest),
  })
  return { ...set, id }
}
