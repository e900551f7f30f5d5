import { checkBlock } from '../codec/header-hash.ts'
import type { Head } from './pool-types.ts'

const hash = /^0x[0-9a-f]{64}$/
const quantity = /^0x(?:0|[1-9a-f][0-9a-f]{0,12})$/

/** The number of a quantity; undefined when it is none that a number holds. */
export const readQuantity = (value: unknown): number | undefined =>
  typeof value === 'string' && quantity.test(value) ? Number(value) : undefined

/** A head from a block or header as a node sends it; undefined when it cannot be one. */
export function readHead(block: unknown): Head | undefined {
  if (typeof block !== 'object' || block === null) return undefined
  const fields = block as Record<string, unknown>
  const number = readQuantity(fields.number)
  const timestamp = readQuantity(fields.timestamp)
  if (number === undefined || timestamp === undefined) return undefined
  if (typeof fields.hash !== 'string' || !hash.test(fields.hash)) return undefined
  if (typeof fields.parentHash !== 'string' || !hash.test(fields.parentHash)) return undefined
  if (checkBlock(fields) === 'bad') return undefined
  return { number, hash: fields.hash, parent_hash: fields.parentHash, timestamp }
}
