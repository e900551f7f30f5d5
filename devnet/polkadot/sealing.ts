import { timeOf } from './author.ts'
import type { PolkadotChain } from './chain.ts'

// So many blocks follow one with a transaction at the chosen pace: enough for ten confirmations.
const trail = 12
const pauseMs = 10

/**
 * Makes blocks by itself. A transaction gets its block at once, the next ones come at the chosen
 * pace, and then a block comes only when its slot has come: a slot of Asset Hub is 12 seconds.
 */
export function startSealing(chain: PolkadotChain, options: { blockTimeMs: number }): () => void {
  const { blockTimeMs } = options
  let left = trail
  let timer: NodeJS.Timeout | undefined
  let isStopped = false

  const schedule = (ms: number) => {
    clearTimeout(timer)
    if (!isStopped) timer = setTimeout(make, ms)
  }
  const make = () => {
    const slotMs = chain.codeOf(chain.best().state).slotMs
    const dueIn = timeOf(chain.best().state) + slotMs - Date.now()
    const hasWork = chain.pool.size() > 0
    if (!hasWork && left <= 0 && dueIn > 0) return schedule(Math.min(dueIn, slotMs))
    const block = chain.make()
    // Its inherents are always there.
    const isEmpty = block.extrinsics.length <= 2
    left = isEmpty ? left - 1 : trail
    schedule(blockTimeMs)
  }
  const unsubscribe = chain.pool.onSubmit(() => schedule(pauseMs))
  const unfollow = chain.subscribe(({ kind, block }) => {
    if (kind === 'best' && block.extrinsics.length > 2 && left < trail) {
      left = trail
      schedule(blockTimeMs)
    }
  })
  schedule(blockTimeMs)
  return () => {
    isStopped = true
    clearTimeout(timer)
    unsubscribe()
    unfollow()
  }
}
