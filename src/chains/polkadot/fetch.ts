import type { AssetKey } from '../../contract/records/assets.ts'
import { type BlockHeader, BlockMissingError, type ChainBlock, UnreadableError } from '../chain.ts'
import { createBlock } from './block.ts'
import { bytesOf, isHash, type RawHeader, readHeader } from './header.ts'
import { eventsKey, executedByKey, nowKey } from './keys.ts'
import type { Nodes } from './nodes.ts'
import type { Runtimes } from './runtimes.ts'
import { readUint, ScaleError } from './scale.ts'
import { readStorage, type Values } from './storage.ts'

/** Fetches whole blocks, and headers. */
export type Fetch = {
  block(number: number, signal: AbortSignal): Promise<ChainBlock>
  header(number: number, signal: AbortSignal): Promise<BlockHeader>
}

const isNull = (result: unknown) => result === null

/** The hash of the final block of a number. */
const askHash = (nodes: Nodes, number: number, signal: AbortSignal): Promise<string> =>
  nodes.ask({
    method: 'chain_getBlockHash',
    params: [number],
    reached: number,
    stateOf: number,
    signal,
    isMissing: isNull,
    accept: (result) => (isHash(result) ? result : undefined),
  })

/** The header of a block. */
export const askHeader = (
  nodes: Nodes,
  block: { number: number; hash: string },
  signal: AbortSignal,
): Promise<RawHeader> =>
  nodes.ask({
    method: 'chain_getHeader',
    params: [block.hash],
    reached: block.number,
    stateOf: block.number,
    signal,
    isMissing: isNull,
    accept: (result) => readHeader(result, block),
  })

/** Makes the functions that fetch: three requests for a block, whatever is tracked. */
export function createFetch(tools: { nodes: Nodes; runtimes: Runtimes; native: AssetKey }): Fetch {
  const { nodes, runtimes, native } = tools

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
        return header && areTexts ? { header, extrinsics: block.extrinsics } : undefined
      },
    })

  const block: Fetch['block'] = async (number, signal) => {
    const hash = await askHash(nodes, number, signal)
    const at = { number, hash }
    const [{ header, extrinsics }, values] = await Promise.all([
      askBlock(number, hash, signal),
      readStorage(nodes, { keys: [eventsKey, nowKey, executedByKey], block: at }, signal),
    ])
    const { parentHash } = header
    const codecs = await runtimes.codecsOf({ block: at, parentHash, values }, signal)
    const events = bytesOf(values.get(eventsKey) ?? '0x00')
    try {
      return createBlock({
        number,
        hash: bytesOf(hash),
        parent_hash: bytesOf(parentHash),
        time: timeIn(values),
        native,
        extrinsics,
        events: codecs.readEvents(events),
        outline: () => codecs.outlineEvents(events),
      })
    } catch (error) {
      if (!(error instanceof ScaleError)) throw error
      // Not skipped silently: a block that cannot be decoded may contain deposits.
      throw new UnreadableError(`the events of block ${number}: ${error.message}`, {
        cause: error,
      })
    }
  }

  const header: Fetch['header'] = async (number, signal) => {
    const hash = await askHash(nodes, number, signal)
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

/** The first block has no time. */
function timeIn(values: Values): number {
  const now = values.get(nowKey)
  return now ? Number(readUint(bytesOf(now), 0, 8)) : 0
}
