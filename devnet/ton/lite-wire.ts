// The forms of lite servers on the wire: TL, and bags of cells with several roots.
import { beginCell, type Cell } from '@ton/core'
import type { BlockId } from './block.ts'

/** Two bytes, the higher one first. */
export const u16 = (value: number): Buffer => Buffer.of(value >> 8, value & 0xff)

/** A constructor's number as TL writes it, and what follows. */
export const tagged = (tag: number, ...parts: Buffer[]): Buffer => {
  const head = Buffer.alloc(4)
  head.writeUInt32LE(tag)
  return Buffer.concat([head, ...parts])
}

/** The bytes of the name of a block. */
export function writeId({ workchain, shard, seqno, root_hash, file_hash }: BlockId): Buffer {
  const place = Buffer.alloc(16)
  place.writeInt32LE(workchain, 0)
  place.writeBigUInt64LE(shard, 4)
  place.writeInt32LE(seqno, 12)
  return Buffer.concat([place, root_hash, file_hash])
}

/** Bytes as TL writes them. */
export function tlBytes(bytes: Buffer): Buffer {
  const head =
    bytes.length < 254
      ? Buffer.of(bytes.length)
      : Buffer.of(254, bytes.length & 0xff, (bytes.length >> 8) & 0xff, bytes.length >> 16)
  return Buffer.concat([head, bytes, Buffer.alloc(-(head.length + bytes.length) & 3)])
}

/** A bag of cells with several roots, which the library only reads. */
export function writeRoots(roots: readonly Cell[]): Buffer {
  const order: Cell[] = []
  const places = new Map<string, number>()
  const visit = (cell: Cell): void => {
    const name = cell.hash().toString('hex')
    if (places.has(name)) return
    for (const ref of cell.refs) visit(ref)
    places.set(name, order.length)
    order.push(cell)
  }
  for (const root of roots) visit(root)
  const last = order.length - 1
  // References point forward, so that the last one visited comes first.
  const placeOf = (cell: Cell): number => last - places.get(cell.hash().toString('hex'))!
  const cells = order.toReversed().map((cell) => {
    const bits = cell.bits.length
    const whole = beginCell().storeBits(cell.bits)
    if (bits % 8 !== 0) whole.storeBit(true)
    while (whole.bits % 8 !== 0) whole.storeBit(false)
    const data = whole.endCell().bits.subbuffer(0, whole.bits)!
    const descriptors = Buffer.of(
      cell.refs.length + (cell.isExotic ? 8 : 0) + 32 * cell.level(),
      Math.ceil(bits / 8) + Math.floor(bits / 8),
    )
    return Buffer.concat([descriptors, data, ...cell.refs.map((ref) => u16(placeOf(ref)))])
  })
  const total = cells.reduce((sum, { length }) => sum + length, 0)
  const size = Buffer.alloc(4)
  size.writeUInt32BE(total)
  return Buffer.concat([
    Buffer.from('b5ee9c72', 'hex'),
    Buffer.of(2, 4),
    u16(cells.length),
    u16(roots.length),
    u16(0),
    size,
    ...roots.map((root) => u16(placeOf(root))),
    ...cells,
  ])
}
