import { Cell, type TupleItem } from '@ton/core'
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

/** Writes what a get-method gave. */
export function writeStackItem(item: TupleItem): unknown {
  if (item.type === 'int') return ['num', hex(item.value)]
  if (item.type === 'nan') return ['num', 'nan']
  if (item.type === 'null') return ['list', { '@type': 'tvm.list', elements: [] }]
  if (item.type === 'tuple')
    return ['tuple', { '@type': 'tvm.tuple', elements: item.items.map(writeStackItem) }]
  return ['cell', { bytes: item.cell.toBoc().toString('base64') }]
}
