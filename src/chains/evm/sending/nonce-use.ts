import { createByteSet } from '../../../lib/bytes.ts'
import type { Tracked } from '../../chain.ts'
import type { AccountNonceUse, Sending } from '../../sending.ts'
import type { FetchBlock } from '../block/fetch.ts'

const only = (address: Buffer): Tracked => ({
  accounts: createByteSet([address]),
  contracts: createByteSet([]),
  tokenAccount: () => [],
})

type Tools = {
  /** How many transactions an address had sent up to a block. */
  countAt(address: Buffer, number: number, signal: AbortSignal): Promise<number>
  fetchBlock: FetchBlock
}

/**
 * Finds the transaction that used a nonce. No RPC method returns it, but the count of an address only grows: the
 * block is found between two of them, and the block itself proves the rest.
 */
export function createFindNonceUse({ countAt, fetchBlock }: Tools): Sending['findNonceUse'] {
  return async ({ from, nonce, upTo, hint }, signal) => {
    const lookIn = async (number: number): Promise<AccountNonceUse | undefined> => {
      const block = await fetchBlock(number, signal)
      const found = block.sent?.find((one) => one.nonce === nonce && one.from.equals(from))
      if (!found) return undefined
      // The sender is a node's claim until its signature is checked.
      await block.check?.(only(from), signal)
      const { hash } = block
      return { hash: found.hash(), block: { number, hash }, failed: found.failed }
    }
    // A receipt names the block in the usual case: one read instead of a search.
    const hinted = hint !== undefined && hint <= upTo ? await lookIn(hint) : undefined
    if (hinted) return hinted
    const isUsed = async (number: number) => (await countAt(from, number, signal)) > nonce
    if (!(await isUsed(upTo))) return undefined
    // Steps of 1, 2, 4 … back, then between the last two: nodes keep the newest states only.
    let used = upTo
    let free = -1
    for (let step = 1; used > 0; step *= 2) {
      const before = Math.max(0, used - step)
      if (!(await isUsed(before))) {
        free = before
        break
      }
      used = before
    }
    while (used - free > 1) {
      const middle = Math.floor((used + free) / 2)
      if (await isUsed(middle)) used = middle
      else free = middle
    }
    return await lookIn(used)
  }
}
