// The canonical chain of one EVM network. This folder owns the heads of the nodes, the links between
// blocks, the choice of the branch and the moment of the switch; the cache, chain queries, streams,
// filters, pending transactions and the tracker read it. It uses the pool only.
//
// It guarantees: there is one branch at a time. A switch is one synchronous step that every reader sees
// at once, and listeners are called in that step. A branch is linked to the chain by parent hashes before
// the switch, so listeners get every removed and every added block; otherwise they get `lost`.

import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { Head, Pool } from '../pool/pool-types.ts'
import { chooseHead } from './choose.ts'
import { createDeepener } from './deepen.ts'
import { createDisputes } from './disputes.ts'
import { createLinkFetcher } from './fetch-links.ts'
import { createFinalized } from './finalized.ts'
import { createLinking, within } from './linking.ts'
import { createLinks, type Links, type Path } from './links.ts'
import { createShownHeads } from './shown-heads.ts'

export type Canonical = {
  /** The tip of the chosen branch; it changes only by a switch. */
  head(): Head | undefined
  /**
   * The canonical hash at this height, where answers of nodes may be kept: undefined outside of the
   * window, while a branch is being linked, and above the point where nodes disagree.
   */
  hashAt(number: number): string | undefined
  /** The canonical hash at this height, also while nodes disagree about it. */
  bestHashAt(number: number): string | undefined
  /** The height of a canonical block, under the conditions of `hashAt`. */
  numberOf(hash: string): number | undefined
  /** Whether a block is known to be off the branch. */
  isGone(hash: string): boolean
  /** The nodes whose head is not on the branch, by name. */
  aside(): string[]
  /** Whether a head is chosen that is not linked yet: the branch is about to change. */
  isLinking(): boolean
  /** Whether blocks between the window and the final ones are being fetched. */
  isDeepening(): boolean
  /** Blocks up to this height do not change any more; -1 when there are none. */
  final(): number
  /** Changes whenever a block may have left the chain. */
  generation(): number
  /** The way from a block to the tip; undefined when it is not known any more. */
  pathFrom(hash: string): Path | undefined
  /** The lowest known block; `extend` adds its parent. */
  lowest(): Head | undefined
  extend(block: Head): boolean
  /** Asks the nodes for their heads now; resolves when the choice among them is made. */
  settle(): Promise<void>
  /** Called within the switch; returns the unsubscriber. */
  onChange(listener: (change: Change) => void): () => void
  /** Forgets everything; the next head begins a new chain. For a network that is not used. */
  reset(): void
  stop(): void
}

/** A switch of the tip. */
export type Change = Path & {
  /** Blocks above this height may have left the chain; undefined when none has. */
  droppedAbove: number | undefined
  /** The new tip could not be linked to the old one: `removed` and `added` are not known. */
  isLost: boolean
}

/** How to build it. */
export type CanonicalOptions = {
  pool: Pick<Pool, 'head' | 'onHead' | 'request' | 'status' | 'look'>
  prefix: string
  clock: Clock
  log: Log
  /** Blocks after which one is final, where `finalized` is not read or the chain has no such tag. */
  finalityDepth?: number
  /** Whether the tag `finalized` of the chain decides, within the window. */
  readsFinalized?: boolean
  windowSize?: number
  /** Blocks that may be missing below a new head. */
  maxGap?: number
  /** How long a doubtful head must stay before it is chosen. */
  doubtMs?: number
}

const tickMs = 250
/** How long `settle` waits for links. */
const maxLinkMs = 1_000

/** Follows the heads of a pool. */
export function createCanonical(options: CanonicalOptions): Canonical {
  const { pool, clock, log, finalityDepth = 64, maxGap = 1_024, doubtMs = 2_000 } = options
  const windowSize = options.windowSize ?? Math.max(256, finalityDepth + 1)
  const fetcher = createLinkFetcher(options)
  const stopped = new AbortController()
  const shown = createShownHeads({ pool, clock, size: windowSize })
  let doubt: { hash: string; since: number } | undefined
  let isLinking = false
  let isTicking = false
  let isCut = false // Whether the window began with a head that could not be linked.
  /** Changes with each reset: work that began before it must not continue. */
  let epoch = 0
  let linked = Promise.withResolvers<void>()

  const shared = {
    fetcher,
    clock,
    signal: stopped.signal,
    links: () => branch.links(),
    final: () => branch.final(),
  }
  const deepener = createDeepener({
    ...shared,
    ended: () => {
      wakeSettlers()
      disputes.find()
    },
  })
  const disputes = createDisputes({
    ...shared,
    log,
    windowSize,
    heads: shown.values,
    isLinking: () => isLinking,
    deepen: deepener.start,
  })

  const finalized = options.readsFinalized
    ? createFinalized({
        ...{ ...options, signal: stopped.signal },
        found: (block) => branch.settle(block),
      })
    : undefined

  const branch = createBranch({
    ...{ log, windowSize, maxAside: maxGap + windowSize },
    // While it is not known whether there is a tag, the deeper bound holds.
    finalityDepth: () => (finalized && finalized.exists() !== false ? windowSize : finalityDepth),
    moved: () => {
      wakeSettlers()
      doubt = undefined
      finalized?.look()
    },
    restarted: (isLost) => {
      isCut = isLost
      if (isCut) deepener.start()
    },
  })

  const wakeSettlers = () => {
    linked.resolve()
    linked = Promise.withResolvers<void>()
  }

  /** The head to move to; undefined while the tip is right. */
  const choose = (own: Links): Head | undefined => {
    const choice = chooseHead({
      tip: own.tip(),
      floor: own.lowest().number,
      hashAt: (number) => own.at(number)?.hash,
      shown: shown.list(own.tip().hash),
    })
    if (!choice?.isDoubtful) {
      doubt = undefined
      return choice?.head
    }
    const { head } = choice
    if (doubt?.hash !== head.hash) doubt = { hash: head.hash, since: clock.now() }
    return clock.now() - doubt.since >= doubtMs ? head : undefined
  }

  /** Moves as far as that needs no node; the head that is left needs links. */
  const advance = (): Head | undefined => {
    let own = branch.links()
    while (own) {
      const head = choose(own)
      if (!head) return undefined
      if (head.number - own.tip().number > maxGap) {
        branch.restart(head)
        own = branch.links()
        continue
      }
      own.put(head)
      const plan = own.plan(head.hash)
      if (plan.kind !== 'path') return head
      branch.move(own, plan)
    }
    return undefined
  }

  const evaluate = () => {
    if (stopped.signal.aborted || linking.isRunning()) return
    if (!branch.links()) {
      const [first] = shown.values()
      const head = first?.head ?? pool.head()
      if (!head) return
      branch.restart(head)
    }
    isLinking = advance() !== undefined
    if (isLinking) linking.start()
    else disputes.find()
    if (!isTicking && isUnsettled()) void tick()
  }

  const linking = createLinking({
    ...shared,
    log,
    windowSize,
    epoch: () => epoch,
    advance,
    restart: branch.restart,
    ended: () => {
      isLinking = false
      wakeSettlers()
      disputes.find()
      if (!isTicking && isUnsettled()) void tick()
    },
  })

  const isUnsettled = (): boolean => {
    const tip = branch.links()?.tip().hash
    for (const { head } of shown.values()) if (head.hash !== tip) return true
    return doubt !== undefined
  }

  /** Looks again while nodes differ: at doubtful heads, and at nodes that went away. */
  const tick = async () => {
    isTicking = true
    while (isUnsettled() && !stopped.signal.aborted) {
      await clock.sleep(tickMs, stopped.signal).catch(() => {})
      evaluate()
      if (isCut) deepener.start()
    }
    isTicking = false
  }

  const unsubscribe = pool.onHead((head, name) => {
    shown.show(name, head)
    linking.wake()
    evaluate()
  })
  evaluate()
  // Which node has shown the first head is not known.
  const first = pool.head()
  if (first) shown.assume(first)

  const bestHashAt = (number: number): string | undefined =>
    isLinking ? undefined : branch.hashAt(number)

  return {
    head: () => branch.links()?.tip(),
    hashAt: (number) => (number > disputes.above() ? undefined : bestHashAt(number)),
    bestHashAt,
    numberOf: (hash) => {
      const links = branch.links()
      const number = isLinking ? undefined : links?.get(hash)?.number
      if (number === undefined || number > disputes.above()) return undefined
      return links?.at(number)?.hash === hash ? number : undefined
    },
    isGone: branch.isGone,
    aside: () => shown.namesBeside(({ number, hash }) => branch.hashAt(number) === hash),
    isLinking: () => isLinking,
    isDeepening: deepener.isRunning,
    final: branch.final,
    generation: branch.generation,
    pathFrom: (hash) => branch.links()?.pathFrom(hash),
    lowest: () => branch.links()?.lowest(),
    extend: (block) => branch.links()?.extend(block) === true,
    async settle() {
      await pool.look()
      evaluate()
      if (isLinking || deepener.isRunning()) await within(shared, maxLinkMs, linked.promise)
    },
    onChange: branch.onChange,
    reset() {
      epoch++
      doubt = undefined
      branch.reset()
      shown.reset()
      disputes.find()
    },
    stop() {
      stopped.abort(new Error('stopped'))
      unsubscribe()
    },
  }
}

/** The chosen branch: its links, what is final, and the switch, which is one synchronous step with all listeners. */
function createBranch(options: {
  log: Log
  windowSize: number
  maxAside: number
  /** Blocks after which one is final. */
  finalityDepth(): number
  /** Within every switch, before the listeners. */
  moved(): void
  /** Within a switch to a new beginning: whether the chain before it is lost. */
  restarted(isLost: boolean): void
}) {
  const { log, windowSize, maxAside } = options
  const listeners = new Set<(change: Change) => void>()
  /** Blocks that have left the chain. Above the tip of a shorter branch nothing stands in their place. */
  const gone = new Set<string>()
  let links: Links | undefined
  let final = -1
  let generation = 0

  const emit = (change: Change) => {
    for (const listener of listeners) {
      try {
        listener(change)
      } catch (error) {
        log.error({ err: error }, 'listener for chain changes failed')
      }
    }
  }

  const leave = (hash: string | undefined) => {
    if (hash !== undefined) gone.add(hash)
    if (gone.size > windowSize) gone.delete(gone.keys().next().value as string)
  }

  const moved = (tip: Head) => {
    final = Math.max(final, tip.number - options.finalityDepth())
    options.moved()
  }

  /** Starts over at a head that cannot be linked to what is known. */
  const restart = (head: Head) => {
    const isFirst = links === undefined
    if (links) {
      log.warn({ from: links.tip().number, to: head.number }, 'chain could not be linked')
      // What was above the new head is none of its ancestors.
      for (let at = head.number + 1; at <= links.tip().number; at++) leave(links.at(at)?.hash)
    }
    links = createLinks({ start: head, windowSize, maxAside })
    // Far below its predecessor: blocks that counted as final may be gone as well.
    if (head.number <= final) final = -1
    const droppedAbove = final
    generation++
    moved(head)
    options.restarted(!isFirst)
    emit({ removed: [], added: [head], droppedAbove, isLost: !isFirst })
  }

  const move = (own: Links, path: Path) => {
    const [lowest] = path.removed
    let droppedAbove: number | undefined
    if (lowest) {
      if (lowest.number <= final) final = -1
      droppedAbove = final < 0 ? -1 : lowest.number - 1
      generation++
      if (path.added.length === 0)
        log.warn({ from: own.tip().number, to: lowest.number - 1 }, 'chain rolled back')
    }
    for (const { hash } of path.removed) leave(hash)
    for (const { hash } of path.added) gone.delete(hash)
    own.apply(path)
    moved(own.tip())
    emit({ ...path, droppedAbove, isLost: false })
  }

  return {
    links: () => links,
    final: () => final,
    generation: () => generation,
    hashAt: (number: number): string | undefined => {
      const block = links?.at(number)
      if (block) return block.hash
      const lowest = links?.lowest()
      return number + 1 === lowest?.number ? lowest.parent_hash : undefined
    },
    restart,
    move,
    isGone: (hash: string): boolean => {
      if (gone.has(hash)) return true
      const block = links?.get(hash)
      const there = block && links?.at(block.number)
      return there !== undefined && there.hash !== hash
    },
    /** Counts a block as final, where it is on the branch. */
    settle: ({ number, hash }: Pick<Head, 'number' | 'hash'>) => {
      if (links?.at(number)?.hash === hash) final = Math.max(final, number)
    },
    onChange: (listener: (change: Change) => void) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    reset: () => {
      generation++
      links = undefined
      final = -1
      gone.clear()
    },
  }
}
