import { type ChainPlace, hashDetail, hashEvent, isSigned } from './hash.ts'
import type { AuditChainRow, AuditEventRow } from './tables.ts'

/** The ends of a chain with what signs them. */
export type ChainEnds = Omit<AuditChainRow, 'id' | 'private_key_sealed'>

/** What a chain turned out to be. */
export type Verified = {
  /** Events that were read. */
  count: number
  /** Events whose detail was erased with their organization. */
  erased: number
  head: ChainPlace
  /** The first broken place; undefined while the chain is whole. */
  broken?: { sequence: number; problem: string }
}

/**
 * Reads a chain from its anchor to its head and stops at the first broken place. `known` are heads that
 * were kept elsewhere: a chain that ends before one of them, or differs there, was cut or replaced.
 */
export async function verifyChain(
  ends: ChainEnds,
  events: AsyncIterable<AuditEventRow>,
  known: readonly ChainPlace[] = [],
): Promise<Verified> {
  const { public_key } = ends
  const anchor = { sequence: ends.anchor_sequence, hash: ends.anchor_hash }
  const head = { sequence: ends.head_sequence, hash: ends.head_hash }
  const kept = new Map(known.map(({ sequence, hash }) => [sequence, hash]))
  let count = 0
  let erased = 0
  const stop = (sequence: number, problem: string): Verified => ({
    ...{ count, erased, head, broken: { sequence, problem } },
  })
  if (!isSigned(public_key, 'anchor', anchor, ends.anchor_signature))
    return stop(anchor.sequence, 'the anchor has no valid signature')
  let last = anchor
  const differs = () => kept.has(last.sequence) && !kept.get(last.sequence)?.equals(last.hash)
  if (differs()) return stop(last.sequence, 'the chain differs from a head that was kept')
  for await (const event of events) {
    const { sequence } = event
    const expected = last.sequence + 1
    if (sequence !== expected) return stop(expected, 'the event is missing')
    if (!hashEvent(last.hash, event).equals(event.hash))
      return stop(sequence, 'the event was changed, or the one before it')
    if (event.detail === null || event.detail_salt === null) erased++
    else if (!hashDetail(event.detail_salt, event.detail).equals(event.detail_hash))
      return stop(sequence, 'the detail of the event was changed')
    last = { sequence, hash: event.hash }
    count++
    if (event.signature && !isSigned(public_key, 'head', last, event.signature))
      return stop(sequence, 'the signature of the event is not valid')
    if (differs()) return stop(sequence, 'the chain differs from a head that was kept')
  }
  if (last.sequence !== head.sequence)
    return stop(last.sequence + 1, `the event is missing: the head is ${head.sequence}`)
  if (!last.hash.equals(head.hash)) return stop(last.sequence, 'the head has another hash')
  if (!isSigned(public_key, 'head', head, ends.head_signature))
    return stop(head.sequence, 'the head has no valid signature')
  const beyond = known.find(({ sequence }) => sequence > head.sequence)
  if (beyond)
    return stop(head.sequence + 1, `the chain was cut: a head of ${beyond.sequence} was kept`)
  return { count, erased, head }
}
