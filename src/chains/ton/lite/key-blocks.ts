// Follows the validators from a trusted key block on, and proves masterchain blocks by their signatures.

import { LRUCache } from 'lru-cache'
import type { Log } from '../../../lib/log.ts'
import { NodeFault } from '../../nodes/fault.ts'
import type { VerificationCounts } from '../../verification.ts'
import { reading } from './block-cells.ts'
import type { ForwardLink, LiteBlockId } from './messages.ts'
import { checkLink, provenValidators, type Validators } from './validators.ts'

/** Asks one lite server for links from a key block to a later block. */
export type AskLinks = (
  known: LiteBlockId,
  target: LiteBlockId,
) => Promise<{ links: ForwardLink[]; to: LiteBlockId }>

/** Proves masterchain blocks; shared by all lite servers of a network. */
export type KeyBlocks = {
  /** Throws NodeFault where the block is not proved. `findKey` names the last key block of the server. */
  prove(block: LiteBlockId, ask: AskLinks, findKey: () => Promise<LiteBlockId>): Promise<void>
  /** From which key block on validators are followed; null before the first proof. */
  anchor(): string | null
}

// Bounds of the work and the memory that a server can cause.
const mostRounds = 10_000
const mostProved = 4_096
const mostSets = 16
const nameOf = ({ seqno, root_hash }: LiteBlockId): string =>
  `${seqno} ${root_hash.toString('hex')}`

/** Starts at the key block of the configuration, or at the last one of the first server. */
export function createKeyBlocks({
  counts,
  log,
  trusted,
}: {
  counts: VerificationCounts
  log: Log
  trusted?: LiteBlockId | undefined
}): KeyBlocks {
  /** The newest key block that is proved. Older blocks are proved from older ones. */
  let known: LiteBlockId[] = []
  let anchor: string | null = null
  const proved = new Set<string>()
  /** Of key blocks: their configuration is large, and comes with every link. */
  const validators = new LRUCache<string, Validators>({ max: mostSets })
  const validatorsOf = (link: ForwardLink): Validators => {
    const name = nameOf(link.from)
    const known = validators.get(name) ?? provenValidators(link)
    validators.set(name, known)
    return known
  }

  const begin = async (findKey: () => Promise<LiteBlockId>): Promise<void> => {
    if (known.length > 0) return
    const first = trusted ?? (await findKey())
    // Another request has begun meanwhile.
    if (known.length > 0) return
    known = [first]
    anchor = `key block ${first.seqno}${trusted ? '' : ', as a node said'}`
    if (!trusted)
      log.warn({ block: first.seqno }, 'validators of TON taken from a lite server without proof')
  }
  const refuse = (reason: string): never => {
    counts.refuse('signatures', reason)
    throw new NodeFault('invalid', reason)
  }
  const noteProved = (block: LiteBlockId): void => {
    proved.add(nameOf(block))
    const [oldest] = proved
    if (proved.size > mostProved && oldest !== undefined) proved.delete(oldest)
  }

  /** Checks links in their order; gives the block that they prove. */
  const follow = (from: LiteBlockId, links: readonly ForwardLink[]): LiteBlockId => {
    let at = from
    for (const link of links) {
      const { seqno } = link.to
      if (nameOf(link.from) !== nameOf(at))
        refuse(`masterchain block ${seqno}: links do not follow`)
      const checked = reading(`the proof of masterchain block ${seqno}`, () =>
        checkLink(link, validatorsOf(link)),
      )
      if ('refusal' in checked) refuse(`masterchain block ${seqno}: ${checked.refusal}`)
      counts.check('signatures')
      noteProved(link.to)
      at = link.to
      if (!('isKey' in checked) || !checked.isKey) return at
      if (seqno > known.at(-1)!.seqno) known = [...known, link.to].slice(-64)
      counts.check('key_blocks')
    }
    return at
  }

  return {
    prove: async (block, ask, findKey) => {
      if (proved.has(nameOf(block))) return
      await begin(findKey)
      if (known.some((key) => nameOf(key) === nameOf(block))) return
      let from = known.findLast(({ seqno }) => seqno < block.seqno)
      if (!from)
        throw new NodeFault(
          'refused',
          `masterchain block ${block.seqno} is older than the trusted key block ${known[0]!.seqno}`,
        )
      for (let round = 0; round < mostRounds; round++) {
        const { links } = await ask(from, block)
        const reached: LiteBlockId = follow(from, links)
        if (nameOf(reached) === nameOf(block)) return
        if (links.length === 0 || reached.seqno >= block.seqno || reached.seqno <= from.seqno)
          refuse(`masterchain block ${block.seqno} has no proof`)
        // A server proves as much at once as it likes.
        from = reached
      }
    },
    anchor: () => anchor,
  }
}
