import { checkBlock } from '../codec/header-hash.ts'
import type { Head, Pool } from '../pool/pool-types.ts'
import type { Links } from './links.ts'

/** How fetching ended: `absent` when every node answered that it does not have the block. */
export type Fetched = 'found' | 'absent' | 'failed'

const timeoutMs = 5_000
/** Blocks of a gap that are fetched at once. */
const atOnce = 32

/** Fetches what is missing between a head and the chain. */
export function createLinkFetcher({
  pool,
  prefix,
}: {
  pool: Pick<Pool, 'request'>
  prefix: string
}) {
  const ask = (method: string, at: string) =>
    pool.request({
      method: `${prefix}_${method}`,
      params: `["${at}",false]`,
      idempotent: true,
      timeoutMs,
      // A node that is behind answers null: another one is asked before that counts.
      isUseless: (reply) => reply.ok && reply.result === 'null',
    })

  const parentOf = async ({ number, parent_hash }: Head): Promise<Head | 'absent' | 'failed'> => {
    const outcome = await ask('getBlockByHash', parent_hash)
    if ('failure' in outcome || !outcome.ok) return 'failed'
    // Another block than the one that was asked for counts as absent. `readLink` has compared its hash with its header.
    const block = readLink(outcome.result, number - 1)
    return block?.hash === parent_hash ? block : 'absent'
  }

  const below = async (links: Links): Promise<Fetched> => {
    const block = await parentOf(links.lowest())
    if (typeof block === 'string') return block
    return links.extend(block) ? 'found' : 'absent'
  }

  return {
    /** The parent of a block. */
    async parent(links: Links, child: Head): Promise<Fetched> {
      const block = await parentOf(child)
      if (typeof block === 'string') return block
      links.put(block)
      return 'found'
    },
    /** The block below the window. */
    below,
    /** Blocks below the window down to this height, many at once; they count as far as they are linked. */
    async lower(links: Links, to: number): Promise<Fetched> {
      const { number } = links.lowest()
      const count = Math.min(atOnce, number - to)
      const outcomes = await Promise.all(
        Array.from({ length: count }, (_, index) =>
          ask('getBlockByNumber', `0x${(number - 1 - index).toString(16)}`),
        ),
      )
      let isLower = false
      for (const outcome of outcomes) {
        if ('failure' in outcome || !outcome.ok) break
        const block = readLink(outcome.result, links.lowest().number - 1)
        if (!block || !links.extend(block)) break
        isLower = true
      }
      return isLower ? 'found' : await below(links)
    },
    /**
     * Blocks below a head by their numbers, many at once: a gap costs one round trip. They count only
     * as far as they are linked to the head; the rest is fetched by hash.
     */
    async gap(links: Links, head: Head): Promise<void> {
      const from = Math.max(links.tip().number + 1, head.number - atOnce)
      const count = head.number - from
      const outcomes = await Promise.all(
        Array.from({ length: count }, (_, index) =>
          ask('getBlockByNumber', `0x${(head.number - 1 - index).toString(16)}`),
        ),
      )
      let child = head
      for (const outcome of outcomes) {
        if ('failure' in outcome || !outcome.ok) return
        const block = readLink(outcome.result, child.number - 1)
        if (block?.hash !== child.parent_hash) return
        links.put(block)
        child = block
      }
    },
  }
}

const hashPattern = /^0x[0-9a-f]{64}$/

function readLink(result: string, number: number): Head | undefined {
  let block: unknown
  try {
    block = JSON.parse(result)
  } catch {
    return undefined
  }
  if (typeof block !== 'object' || block === null) return undefined
  const fields = block as Record<string, unknown>
  const { hash, parentHash } = fields
  if (typeof hash !== 'string' || typeof parentHash !== 'string') return undefined
  if (!hashPattern.test(hash) || !hashPattern.test(parentHash)) return undefined
  // Where the type of header is known it must hash to its own hash, so links cannot be invented. Headers with fields of
  // their own pass unchecked.
  if (Number(fields.number) !== number || checkBlock(fields) === 'bad') return undefined
  return { number, hash, parent_hash: parentHash, timestamp: Number(fields.timestamp) || 0 }
}
