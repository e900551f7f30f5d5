import { beginCell, Cell, parseTuple, type Slice, type TupleItem } from '@ton/core'
import { ApiError } from './api-error.ts'

/** Reads an argument of a get-method, as API v2 writes it. */
export function readStackItem(item: unknown): TupleItem {
  const [type, value] = Array.isArray(item) ? (item as [unknown, unknown]) : []
  if (type === 'num') return { type: 'int', value: readInteger(String(value)) }
  const bytes = typeof value === 'string' ? value : (value as { bytes?: unknown } | null)?.bytes
  if (typeof type !== 'string' || typeof bytes !== 'string')
    throw new ApiError(422, 'stack: an item is not understood')
  const cell = Cell.fromBase64(bytes)
  return /slice/i.test(type) ? { type: 'slice', cell } : { type: 'cell', cell }
}

const readInteger = (text: string): bigint =>
  text.startsWith('-') ? -BigInt(text.slice(1)) : BigInt(text)

const hex = (value: bigint): string =>
  value < 0n ? `-0x${(-value).toString(16)}` : `0x${value.toString(16)}`

// Beyond so many values a lite server gives up (`FakeVmStateLimits` in validator/impl/liteserver.cpp of ton-blockchain/ton).
const mostValues = 1_000

/** Throws for a stack that a lite server refuses. */
export function assertSerializable(stack: Cell): void {
  if (stack.beginParse().loadUint(24) > mostValues)
    throw new Error('cannot serialize resulting stack')
}

/** Writes what a get-method gave, as API v2 does; kinds that it does not know are `unsupported`. */
export function writeStack(stack: Cell): unknown[] {
  assertSerializable(stack)
  const items: unknown[] = []
  let rest = stack.beginParse()
  for (let left = rest.loadUint(24); left > 0; left--) {
    const before = rest.loadRef()
    items.unshift(writeOne(rest))
    rest = before.beginParse()
  }
  return items
}

/** The library has no continuations, which the executor serializes with the kind 6. */
function writeOne(slice: Slice): unknown {
  try {
    const one = beginCell().storeUint(1, 24).storeRef(Cell.EMPTY).storeSlice(slice).endCell()
    return writeStackItem(parseTuple(one)[0]!)
  } catch {
    return ['unsupported', '']
  }
}

function writeStackItem(item: TupleItem): unknown {
  if (item.type === 'int') return ['num', hex(item.value)]
  if (item.type === 'nan') return ['num', 'NaN']
  if (item.type === 'null') return ['list', { '@type': 'tvm.list', elements: [] }]
  if (item.type === 'tuple')
    return ['tuple', { '@type': 'tvm.tuple', elements: item.items.map(writeStackItem) }]
  return ['cell', { bytes: item.cell.toBoc().toString('base64') }]
}
