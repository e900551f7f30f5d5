// Stacks that get-methods gave (`VmStack` in crypto/block/block.tlb of ton-blockchain/ton). The author of a contract chooses
// them, and a lite server serializes any: continuations, builders, tuples in tuples, NaN. What is not read here is an item
// without a meaning, and no reason to distrust the server.

import { Cell, type Slice } from '@ton/core'
import { NodeFault } from '../../nodes/fault.ts'

// Of the methods that are called, the longest gives five values.
const mostItems = 8
// The server gives up beyond 1,000 values (`FakeVmStateLimits` in validator/impl/liteserver.cpp).
const mostDepth = 1_000
// A content of a token may have an image in it. Larger ones take long to hash.
const mostBytes = 512 * 1024

/** The first items of a stack, as API v2 writes them. Throws NodeFault where there is no stack in the bytes. */
export function readStack(bytes: Buffer): unknown[] {
  if (bytes.length > mostBytes)
    throw new NodeFault('refused', `a result of ${bytes.length} bytes is not read`)
  try {
    return readItems(Cell.fromBoc(bytes)[0]!)
  } catch {
    // Also cells that the virtual machine makes and the library does not know.
    throw new NodeFault('refused', 'the result cannot be read')
  }
}

function readItems(stack: Cell): unknown[] {
  let rest = stack.beginParse()
  const depth = rest.loadUint(24)
  if (depth > mostDepth) throw new Error('a stack that is too deep')
  const items: unknown[] = []
  // The last item comes first.
  for (let place = depth - 1; place >= 0; place--) {
    const before = rest.loadRef()
    if (place < mostItems) items.unshift(readItem(rest))
    rest = before.beginParse()
  }
  return items
}

const unsupported = ['unsupported', '']

function readItem(slice: Slice): unknown {
  try {
    return readValue(slice)
  } catch {
    return unsupported
  }
}

/** The kinds that the methods of tokens give; a null is none of them, as in API v2. */
function readValue(slice: Slice): unknown {
  const kind = slice.loadUint(8)
  if (kind === 1) return writeNumber(slice.loadIntBig(64))
  if (kind === 2) {
    // The bit that is set marks a NaN.
    if (slice.loadUint(7) !== 0) return unsupported
    return writeNumber(slice.loadIntBig(257))
  }
  if (kind === 3) return writeCell(slice.loadRef())
  if (kind === 4) return writeCell(readPart(slice))
  return unsupported
}

/** A slice is a part of a cell: from and to a bit, and a reference. */
function readPart(slice: Slice): Cell {
  const [bitsFrom, bitsTo] = [slice.loadUint(10), slice.loadUint(10)]
  const [refsFrom, refsTo] = [slice.loadUint(3), slice.loadUint(3)]
  const { bits, refs } = slice.loadRef()
  if (bitsFrom > bitsTo || refsFrom > refsTo) throw new Error('a slice that ends before it begins')
  return new Cell({
    bits: bits.substring(bitsFrom, bitsTo - bitsFrom),
    refs: refs.slice(refsFrom, refsTo),
  })
}

const writeNumber = (value: bigint): unknown => [
  'num',
  value < 0n ? `-0x${(-value).toString(16)}` : `0x${value.toString(16)}`,
]

const writeCell = (cell: Cell): unknown => ['cell', { bytes: cell.toBoc().toString('base64') }]
