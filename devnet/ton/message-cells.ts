import { type Cell, Dictionary } from '@ton/core'

/**
 * The messages of a transaction as the cells that they are. Written again from what was read, a
 * message may get another layout and with it another hash.
 */
export function messageCellsOf(transaction: Cell): { in: Cell | undefined; out: Cell[] } {
  const slice = transaction.refs[0]!.beginParse()
  return {
    in: slice.loadMaybeRef() ?? undefined,
    out: slice.loadDict(Dictionary.Keys.Uint(15), Dictionary.Values.Cell()).values(),
  }
}
