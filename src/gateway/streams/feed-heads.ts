import type { Head, Pool } from '../../chains/evm/pool/pool-types.ts'
import type { Clock } from '../../lib/clock.ts'
import type { FeedBlock } from './feed-block.ts'
import type { FeedChain, Link } from './feed-chain.ts'
import { chooseTarget, highest, type Shown } from './feed-target.ts'

/** The heads that nodes show, and which of them is to be followed. */
export type FeedHeads = {
  /** The best head and what is known of its ancestors, ascending; empty when there is none. */
  links(): Link[]
  /** The head to go to; undefined while the tip is right. */
  choose(chain: FeedChain<FeedBlock>): Link | undefined
  /** The chain ends here now. */
  moved(tip: Link): void
  /** The head cannot be linked now; it is left alone for a while. */
  failed(head: Link): void
  onNews(listener: () => void): void
  stop(): void
}

const firstRetryMs = 50
const lastRetryMs = 2_000
const maxFailures = 1_000

/** Listens to the heads of a pool. It costs nothing but memory, and that is bounded. */
export function createFeedHeads(options: {
  pool: Pool
  clock: Clock
  windowSize: number
  doubtMs: number
}): FeedHeads {
  const { pool, clock, windowSize, doubtMs } = options
  const shown = new Map<string, Link>()
  const recent = new Map<string, Link>()
  const failures = new Map<string, { until: number; pauseMs: number }>()
  const witnesses = new Set<string>()
  let tipHash = ''
  let doubt: { hash: string; since: number } | undefined
  let notifyNews = () => {}

  const remember = (link: Link) => {
    recent.delete(link.hash)
    recent.set(link.hash, link)
    if (recent.size > 2 * windowSize) recent.delete(recent.keys().next().value as string)
  }

  const unsubscribe = pool.onHead((head, upstream) => {
    const link = linkOf(head)
    remember(link)
    shown.set(upstream, link)
    if (link.hash === tipHash) witnesses.add(upstream)
    notifyNews()
  })
  const first = pool.head()
  if (first) remember(linkOf(first))

  const look = (): Shown[] => {
    const now = clock.now()
    const live = new Set<string>()
    for (const { name, state } of pool.status())
      if (state === 'healthy' || state === 'degraded') live.add(name)
    return [...shown]
      .filter(([, { hash }]) => (failures.get(hash)?.until ?? 0) <= now)
      .map(([upstream, head]) => ({
        head,
        isLive: live.has(upstream),
        isWitness: witnesses.has(upstream),
      }))
  }

  /** The best head, unless no reachable node shows it any more: then the best that is shown. */
  const firstHead = (): Link | undefined => {
    const head = pool.head()
    const live = look().filter(({ isLive }) => isLive)
    if (!head || live.some((one) => one.head.hash === head.hash)) return head && linkOf(head)
    return highest(live)?.head ?? linkOf(head)
  }

  return {
    links() {
      const links: Link[] = []
      let link = firstHead()
      while (link && links.length < windowSize) {
        links.unshift(link)
        const { number, parentHash }: Link = link
        link = recent.get(parentHash)
        if (link?.number !== number - 1) break
      }
      return links
    },
    choose(chain) {
      const tip = chain.tip()
      const target = chooseTarget({
        tip,
        floor: chain.floor(),
        hashAt: (number) => chain.at(number)?.hash,
        shown: look(),
      })
      if (!target?.isDoubtful) {
        doubt = undefined
        return target?.head
      }
      const { hash } = target.head
      if (doubt?.hash !== hash) doubt = { hash, since: clock.now() }
      return clock.now() - doubt.since >= doubtMs ? target.head : undefined
    },
    moved(tip) {
      doubt = undefined
      tipHash = tip.hash
      witnesses.clear()
      for (const [upstream, { hash }] of shown) if (hash === tipHash) witnesses.add(upstream)
    },
    failed({ hash }) {
      const pauseMs = Math.min((failures.get(hash)?.pauseMs ?? firstRetryMs / 2) * 2, lastRetryMs)
      if (failures.size >= maxFailures) failures.clear()
      failures.set(hash, { until: clock.now() + pauseMs, pauseMs })
    },
    onNews(listener) {
      notifyNews = listener
    },
    stop: unsubscribe,
  }
}

const linkOf = ({ number, hash, parent_hash }: Head): Link => ({
  number,
  hash,
  parentHash: parent_hash,
})
