import type { ChainBlock, Tracked } from '../../chains/chain.ts'

/** Some blocks must be checked before they are stored; checking asks nodes, outside of a transaction. */
class UncheckedError extends Error {
  override name = 'UncheckedError'
  readonly blocks: readonly ChainBlock[]
  readonly tracked: Tracked
  constructor(blocks: readonly ChainBlock[], tracked: Tracked) {
    super('blocks are not checked')
    this.blocks = blocks
    this.tracked = tracked
  }
}

/** Ends the transaction where the blocks hold unchecked claims about the accounts that are tracked now. */
export type AssertChecked = (blocks: readonly ChainBlock[], tracked: Tracked) => void

// Addresses that are registered between two rounds make another one necessary.
const maxRounds = 3

/**
 * Stores blocks once all that concerns tracked accounts is checked. Which accounts those are is known only
 * inside the transaction, so that it is begun again after a check. That costs the look-up twice, and only
 * for blocks with such claims; looking up all blocks beforehand would cost it for each.
 */
export async function storeChecked<stored>(
  store: (assertChecked: AssertChecked) => Promise<stored>,
  signal: AbortSignal = new AbortController().signal,
): Promise<stored> {
  for (let round = 1; ; round++) {
    try {
      return await store((blocks, tracked) => {
        const unchecked = blocks.filter((block) => block.needsCheck?.(tracked))
        if (unchecked.length > 0 && round <= maxRounds) throw new UncheckedError(unchecked, tracked)
      })
    } catch (error) {
      if (!(error instanceof UncheckedError)) throw error
      // One after the other: few blocks need it, and each check may ask several nodes.
      for (const block of error.blocks) await block.check!(error.tracked, signal)
    }
  }
}
