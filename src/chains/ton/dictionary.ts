// Dictionaries that strangers wrote. One key is looked up: a tree in which both branches are the same cell has 2^n leaves in n
// cells, and reading it whole, as the library does, would not end.

import type { Cell, Slice } from '@ton/core'

/** The cell that a key of a dictionary has; undefined where it has none. */
export function findByKey(root: Cell, key: Buffer): Cell | undefined {
  const bits = [...key].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  let cell = root
  for (let at = 0; ; at++) {
    const slice = cell.beginParse()
    const label = readLabel(slice, bits.length - at)
    if (!bits.startsWith(label, at)) return undefined
    at += label.length
    if (at === bits.length) return slice.loadRef()
    const next = cell.refs[bits[at] === '1' ? 1 : 0]
    if (!next) return undefined
    cell = next
  }
}

/** The label of an edge of a dictionary. */
export function readLabel(slice: Slice, most: number): string {
  const read = (length: number): string => {
    let text = ''
    for (let left = length; left > 0; left--) text += slice.loadBit() ? '1' : '0'
    return text
  }
  // `hml_short`, `hml_long` and `hml_same` of block.tlb, by their first bits.
  if (!slice.loadBit()) {
    let length = 0
    while (slice.loadBit()) length++
    return read(length)
  }
  const size = Math.ceil(Math.log2(most + 1))
  if (!slice.loadBit()) return read(slice.loadUint(size))
  const bit = slice.loadBit() ? '1' : '0'
  return bit.repeat(slice.loadUint(size))
}
