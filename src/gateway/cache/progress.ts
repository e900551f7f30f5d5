import type { Canonical } from '../../chains/evm/canonical/canonical.ts'
import type { Head, Pool } from '../../chains/evm/pool/pool-types.ts'
import type { Session } from '../streams/session.ts'

/** How far a key may look, and how far it must: what it has been shown it is not shown less of. */
export type Progress = {
  /** The head that `latest` stands for; undefined when it has to be asked for anew. */
  usableHead(session: Session): Head | undefined
  /** The block that nodes must have reached to answer this key; -1 when any node will do. */
  lowest(session: Session): number
  /** The same, where the nodes that are in front have failed. */
  leastOf(session: Session): number
  /** No node that can be reached has the head: for a while `latest` is what the others have. */
  lostHead(): void
  /** The key was shown this block. */
  see(session: Session, number: number): void
  /** The key sent a transaction: its block is looked for at once, though it is not known here. */
  wrote(session: Session): void
}

// How long a key that sent a transaction is answered by the nodes: its block may not be known here yet.
const writeWindowMs = 3_000
const lostForMs = 2_000
/** After that a network that stays behind was rolled back, rather than seen late. */
const aheadForMs = 5_000

/** Makes the watch over what keys have seen. */
export function createProgress(options: { pool: Pool; view: Canonical; now(): number }): Progress {
  const { pool, view, now } = options
  // A single node cannot be behind another, and requiring more than it has would only fail calls.
  const isAlone = pool.status().length === 1

  let lostUntil = 0

  const highestOf = (session: Session, head: Head | undefined): number => {
    const generation = view.generation()
    if (session.generation !== generation) {
      session.generation = generation
      session.highest = -1
    }
    if (!head || session.highest <= head.number) session.aheadSince = 0
    else if (session.aheadSince === 0) session.aheadSince = now()
    else if (now() - session.aheadSince > aheadForMs) {
      session.aheadSince = 0
      session.highest = head.number
    }
    return session.highest
  }

  const isLost = () => {
    if (lostUntil === 0) return false
    if (now() < lostUntil) return true
    lostUntil = 0
    return false
  }

  return {
    leastOf: (session) => (isAlone ? -1 : highestOf(session, view.head())),
    lostHead() {
      lostUntil = now() + lostForMs
    },
    lowest(session) {
      if (isAlone) return -1
      const head = isLost() ? undefined : view.head()
      return Math.max(highestOf(session, head), head?.number ?? -1)
    },
    usableHead(session) {
      const head = view.head()
      if (!head || head.number < highestOf(session, head) || isLost()) return undefined
      if (session.wroteUntil === 0) return head
      if (head.number <= session.wroteAtBlock && now() < session.wroteUntil) return undefined
      session.wroteUntil = 0
      return head
    },
    see(session, number) {
      if (number > session.highest) session.highest = number
    },
    wrote(session) {
      session.wroteAtBlock = view.head()?.number ?? -1
      session.wroteUntil = now() + writeWindowMs
    },
  }
}
