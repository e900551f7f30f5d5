import { type Cell, type CommonMessageInfo, loadCommonMessageInfo, type Slice } from '@ton/core'

/** A message without the state that it may bring for its receiver. */
export type TonMessage = { info: CommonMessageInfo; body: Cell }

/**
 * Reads a message. The first state of the receiver is stepped over: its sender writes it, and its libraries are a dictionary,
 * which the library would read whole. One of 40 cells in which both branches are the same has 2^40 leaves.
 */
export function loadMessage(cell: Cell): TonMessage {
  const slice = cell.beginParse()
  const info = loadCommonMessageInfo(slice)
  if (slice.loadBit()) {
    if (slice.loadBit()) slice.loadRef()
    else skipStateInit(slice)
  }
  return { info, body: slice.loadBit() ? slice.loadRef() : slice.asCell() }
}

/** `StateInit` of crypto/block/block.tlb. */
function skipStateInit(slice: Slice): void {
  if (slice.loadBit()) slice.skip(5)
  if (slice.loadBit()) slice.skip(2)
  // Code, data and libraries.
  for (let parts = 3; parts > 0; parts--) slice.loadMaybeRef()
}
