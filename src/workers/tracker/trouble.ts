import { ChainUnavailableError, UnreadableError } from '../../chains/chain.ts'
import type { Clock } from '../../lib/clock.ts'
import { isDatabaseUnavailable } from '../../storage/pg/errors.ts'
import { LeaseLostError } from '../../storage/tracking/leases.ts'

/** How long a block that cannot be read holds up those after it. */
export type TroublePatience = {
  /** Where nodes answered and their answer cannot be used, or storing it fails. */
  unreadableMs: number
  /** Where no node answered what was asked, though they answer other questions. */
  silentMs: number
}

const usualPatience: TroublePatience = { unreadableMs: 60_000, silentMs: 600_000 }

// One failure may be chance.
const leastFailures = 3
// A failure that returns so soon is the same one: do not wait as long again for the next block.
const nearBlocks = 32

/**
 * Remembers at which block a tracker fails, and for how long. No block may stop a network for good:
 * anyone can put data into one that no node returns, or that the code cannot decode.
 */
export function createTroubles({
  clock,
  patience,
}: {
  clock: Clock
  patience?: Partial<TroublePatience> | undefined
}) {
  const { unreadableMs, silentMs } = { ...usualPatience, ...patience }
  let at:
    | { block: number; since: number; failures: number; limitMs: number; reason: string }
    | undefined
  let skippedAt: number | undefined

  return {
    /** A block could not be fetched or stored. */
    failed: (block: number, error: unknown): void => {
      // Failures of the database, the lease or our own checks say nothing about the block: retry
      // without an end.
      if (isDatabaseUnavailable(error) || error instanceof LeaseLostError || isOurs(error)) return
      const isSilent = error instanceof ChainUnavailableError && !(error instanceof UnreadableError)
      const reason = error instanceof Error ? error.message : String(error)
      // Only the first block that fails counts: those after it are not reached.
      const known = at?.block === block ? at : undefined
      // Blocks after a skipped one often fail for the same reason. They are skipped as soon as they
      // have failed often enough.
      const isNear = skippedAt !== undefined && block - skippedAt <= nearBlocks
      const limitMs = isNear ? 0 : isSilent ? silentMs : unreadableMs
      at = {
        block,
        since: known?.since ?? clock.now(),
        failures: (known?.failures ?? 0) + 1,
        limitMs,
        reason: reason.slice(0, 500),
      }
    },
    /** Why a block cannot be read, once that has lasted for too long. */
    lasting: (block: number): string | undefined =>
      at?.block === block && at.failures >= leastFailures && clock.now() - at.since >= at.limitMs
        ? at.reason
        : undefined,
    /** A block was stored. */
    passed: (block: number): void => {
      if (at && block >= at.block) at = undefined
      if (skippedAt !== undefined && block - skippedAt > nearBlocks) skippedAt = undefined
    },
    /** A block was left out. */
    skipped: (block: number): void => {
      at = undefined
      skippedAt = block
    },
    /** The nodes are unreachable: it is nothing about the block. */
    forget: (): void => {
      at = undefined
    },
    isAny: (): boolean => at !== undefined,
  }
}

const isOurs = (error: unknown): boolean =>
  error instanceof Error &&
  ['CursorMovedError', 'DivergedError', 'ForeignChainError'].includes(error.name)
