// The encodings of spec 2.13, checked strictly on values from outside.

const quantity = /^0x(?:0|[1-9a-fA-F][0-9a-fA-F]{0,63})$/
const height = /^0x(?:0|[1-9a-fA-F][0-9a-fA-F]{0,15})$/
const data = /^0x(?:[0-9a-fA-F]{2})*$/
const address = /^0x[0-9a-fA-F]{40}$/
const hash = /^0x[0-9a-fA-F]{64}$/

/** `0x` and the minimal hex digits. */
export const isQuantity = (value: unknown): value is string =>
  typeof value === 'string' && quantity.test(value)

/** `0x` and two hex digits per byte. */
export const isData = (value: unknown): value is string =>
  typeof value === 'string' && data.test(value)

/** 20 bytes; upper and lower case mean the same. */
export const isAddress = (value: unknown): value is string =>
  typeof value === 'string' && address.test(value)

/** 32 bytes. */
export const isHash = (value: unknown): value is string =>
  typeof value === 'string' && hash.test(value)

/** The names of blocks. `safe` and `finalized` are younger than the specification. */
const blockTags: ReadonlySet<unknown> = new Set([
  'latest',
  'pending',
  'earliest',
  'safe',
  'finalized',
])

/** A quantity or the name of a block. */
export const isBlock = (value: unknown): value is string =>
  typeof value === 'string' && (height.test(value) || blockTags.has(value))

/** A number as a quantity. */
export const toQuantity = (value: number | bigint): string => `0x${value.toString(16)}`

/** A block number as a number; beyond 2^53 it lies in no chain's past, so precision is no matter. */
export const toNumber = (text: string): number => Number.parseInt(text, 16)
