// Fetches a block in three requests: its hash, its body with the header, and its events from the state. With full
// verification the roots of the header prove body and state, and the relay chain proves finality where its nodes are
// configured.

import { LRUCache } from 'lru-cache'
import type { AssetKey } from '../../contract/records/assets.ts'
import { type BlockHeader, BlockMissingError, type ChainBlock, UnreadableError } from '../chain.ts'
import { NodeFault } from '../nodes/fault.ts'
import type { VerificationCounts } from '../verification.ts'
import type { BalanceEvent } from './balance-event.ts'
import { createBlock } from './block.ts'
import type { Finality } from './finality.ts'
import { bytesOf, isHash, type RawHeader, readHeader } from './header.ts'
import { eventsKey, executedByKey, nowKey } from './keys.ts'
import { askHeader, type PolkadotNodes } from './nodes.ts'
import type { Runtimes } from './runtimes.ts'
import { readUint, ScaleError } from './scale.ts'
import { readProvenStorage, readStorage, type Values } from './storage.ts'
import { isExtrinsicsRoot } from './trie.ts'

/** Fetches whole blocks, and headers. */
export type Fetch = {
  block(number: number, signal: AbortSignal): Promise<ChainBlock>
  header(number: number, signal: AbortSignal): Promise<BlockHeader>
}

const mostFailing = 1_000
const mostAttempts = 3
const isNull = (result: unknown) => result === null

/** The hash of the final block of a number. */
const askHash = async (
  { nodes, counts, finality }: Pick<FetchTools, 'nodes' | 'counts' | 'finality'>,
  number: number,
  signal: AbortSignal,
): Promise<string> => {
  const proven = await finality?.hashAt(number, signal)
  return await nodes.ask({
    method: 'chain_getBlockHash',
    params: [number],
    reached: number,
    stateOf: number,
    signal,
    isMissing: isNull,
    accept: (result) => {
      if (!isHash(result)) return undefined
      if (proven === undefined || proven === result) return result
      const reason = `block ${number} is not the one that the relay chain has made final`
      counts.refuse('finality', reason)
      throw new NodeFault('invalid', reason)
    },
  })
}

/** What fetching needs. */
export type FetchTools = {
  nodes: PolkadotNodes
  runtimes: Runtimes
  native: AssetKey
  counts: VerificationCounts
  /** Where the relay chain is asked which blocks are final. */
  finality?: Finality | undefined
}

/** Makes the functions that fetch: three requests for a block, whatever is tracked. */
export function createFetch(tools: FetchTools): Fetch {
  const { nodes, runtimes, native, counts } = tools

  // How often the events of a block could not be decoded.
  const failures = new LRUCache<string, number>({ max: mostFailing })
  const askBlock = (number: number, hash: string, signal: AbortSignal) =>
    nodes.ask({
      method: 'chain_getBlock',
      params: [hash],
      reached: number,
      stateOf: number,
      signal,
      isMissing: isNull,
      accept: (result) => {
        const { block } = result as { block: { header: unknown; extrinsics: string[] } }
        const header = readHeader(block.header, { number, hash })
        const areTexts = block.extrinsics.every((extrinsic) => extrinsic.startsWith('0x'))
        if (!header || !areTexts) return undefined
        // It takes as long as all the rest of a block together.
        if (counts.mode === 'full') assertBody(counts, header, block.extrinsics)
        return { header, extrinsics: block.extrinsics }
      },
    })

  const block: Fetch['block'] = async (number, signal) => {
    const hash = await askHash(tools, number, signal)
    const at = { number, hash }
    const keys = [eventsKey, nowKey, executedByKey]
    const asked = askBlock(number, hash, signal)
    const [{ header, extrinsics }, values] = await Promise.all([
      asked,
      counts.mode === 'full'
        ? asked.then(({ header: { stateRoot: root } }) =>
            readProvenStorage(nodes, { keys, block: at, root, counts }, signal),
          )
        : readStorage(nodes, { keys, block: at }, signal),
    ])
    const { parentHash } = header
    const codecs = await runtimes.codecsOf({ block: at, parentHash, values }, signal)
    const events = bytesOf(values.get(eventsKey) ?? '0x00')
    const found: BalanceEvent[] = []
    const make = (readEvents: () => BalanceEvent[]): ChainBlock =>
      createBlock({
        number,
        hash: bytesOf(hash),
        parent_hash: bytesOf(parentHash),
        time: timeIn(values),
        native,
        extrinsics,
        events: readEvents(),
        outline: () => codecs.outlineEvents(events),
      })
    try {
      return make(() => codecs.readEvents(events, found))
    } catch (error) {
      if (!(error instanceof ScaleError)) throw error
      const reason = `the events of block ${number}: ${error.message}`
      const attempts = (failures.get(hash) ?? 0) + 1
      failures.set(hash, attempts)
      // Another node may have them whole.
      if (attempts < mostAttempts) throw new UnreadableError(reason, { cause: error })
      // Not skipped silently: the block is stored with what could be decoded, and is a gap.
      return { ...make(() => wholeExtrinsics(found, extrinsics.length)), lacks: reason }
    }
  }

  const header: Fetch['header'] = async (number, signal) => {
    // A header says where the chain is; what is stored comes from blocks.
    const hash = await askHash({ nodes, counts }, number, signal)
    const [{ parentHash }, values] = await Promise.all([
      askHeader(nodes, { number, hash }, signal),
      readStorage(nodes, { keys: [nowKey], block: { number, hash } }, signal).catch(
        (error: unknown): Values => {
          // Its place in the chain is known without its state.
          if (error instanceof BlockMissingError) return new Map()
          throw error
        },
      ),
    ])
    return {
      number,
      hash: bytesOf(hash),
      parent_hash: bytesOf(parentHash),
      time: timeIn(values),
    }
  }
  return { block, header }
}

/** Refuses extrinsics that are not those of the header. */
function assertBody(
  counts: VerificationCounts,
  { number, extrinsicsRoot }: RawHeader,
  extrinsics: readonly string[],
): void {
  if (!isExtrinsicsRoot(bytesOf(extrinsicsRoot), extrinsics.map(bytesOf))) {
    const reason = `the body of block ${Number(number)} is not that of its header`
    counts.refuse('bodies', reason)
    throw new NodeFault('invalid', reason)
  }
  counts.check('bodies')
}

/**
 * The events before a failure, without what may be damaged itself: the last one, and those of the extrinsic in
 * which it is, because its fee is not known.
 */
export function wholeExtrinsics(
  found: readonly BalanceEvent[],
  extrinsics: number,
): BalanceEvent[] {
  const last = found.at(-1)?.extrinsic
  return found
    .slice(0, -1)
    .filter(({ extrinsic }) => extrinsic === undefined || extrinsic !== last)
    .filter(({ extrinsic = -1 }) => extrinsic < extrinsics)
}

/** The first block has no time. */
function timeIn(values: Values): number {
  const now = values.get(nowKey)
  return now ? Number(readUint(bytesOf(now), 0, 8)) : 0
}
