import { hash } from 'node:crypto'

const zeros = '0'.repeat(64)

const word = (value: bigint | number): string => value.toString(16).padStart(64, '0')

// Of the signatures that the code has, which are few.
const selectors = new Map<string, string>()

const selectorOf = (signature: string): string => {
  let selector = selectors.get(signature)
  if (selector === undefined) {
    selector = hash('keccak-256', signature, 'hex').slice(0, 8)
    selectors.set(signature, selector)
  }
  return selector
}

/** The data of a call whose arguments are single words. */
export const encodeCall = (signature: string, ...args: (bigint | Uint8Array)[]): string => {
  let data = `0x${selectorOf(signature)}`
  for (const arg of args) data += typeof arg === 'bigint' ? word(arg) : wordOfBytes(arg)
  return data
}

const wordOfBytes = (bytes: Uint8Array): string => zeros.slice(2 * bytes.length) + bytes.toHex()

/** The word at an index of returned data; undefined beyond its end. */
export const readWord = (data: string, index = 0): bigint | undefined =>
  data.length < 66 + index * 64 ? undefined : wordAt(data, 2 + index * 64)

// Up to here a number is exact.
const exactDigits = 13

/** The word whose digits begin at a place. Most are short, and those take a quarter of the time. */
const wordAt = (data: string, begin: number): bigint => {
  const end = begin + 64
  return data.startsWith(shortZeros, begin)
    ? BigInt(Number.parseInt(data.slice(end - exactDigits, end), 16))
    : BigInt(`0x${data.slice(begin, end)}`)
}

const shortZeros = zeros.slice(exactDigits)

const longestText = 1_000

/** A returned string, or the bytes32 that old tokens return in its place; undefined for neither. */
export function readText(data: string, longest = longestText): string | undefined {
  const bytes = Buffer.from(data.slice(2), 'hex')
  if (bytes.length === 32) return clean(bytes.subarray(0, endOf(bytes)))
  const offset = readWord(data)
  if (offset === undefined || offset % 32n !== 0n || offset >= BigInt(bytes.length))
    return undefined
  const length = readWord(data, Number(offset) / 32)
  if (length === undefined || length > BigInt(longest)) return undefined
  const begin = Number(offset) + 32
  if (begin + Number(length) > bytes.length) return undefined
  return clean(bytes.subarray(begin, begin + Number(length)))
}

const endOf = (bytes: Buffer): number => {
  const end = bytes.indexOf(0)
  return end === -1 ? bytes.length : end
}

// What PostgreSQL cannot store, and what would let a name rewrite the line it is shown in.
const clean = (bytes: Buffer): string =>
  bytes
    .toString('utf8')
    .replace(/[\p{Cc}\p{Bidi_Control}]/gu, '')
    .trim()

// That the call may fail, and where its data begin.
const mayFail = word(1) + word(96)

/** The data of an `aggregate3` call of Multicall3 in which every call may fail. */
export function encodeAggregate(calls: readonly { to: string; data: string }[]): string {
  let offsets = ''
  let bodies = ''
  let offset = calls.length * 32
  for (const { to, data } of calls) {
    const digits = data.slice(2)
    const padding = zeros.slice(((digits.length + 63) % 64) + 1)
    const length = word(digits.length / 2)
    offsets += word(offset)
    bodies += zeros.slice(40) + to.slice(2).toLowerCase() + mayFail + length + digits + padding
    offset += 128 + (digits.length + padding.length) / 2
  }
  const head = `0x${selectorOf('aggregate3((address,bool,bytes)[])')}${word(32)}`
  return head + word(calls.length) + offsets + bodies
}

/**
 * What `aggregate3` returned: the first word of what each call returned, zero where that is shorter;
 * undefined where the call failed. Undefined for what is no such answer.
 */
export function decodeAggregate(data: string, count: number): (bigint | undefined)[] | undefined {
  if (numberAt(data, 2) !== 32 || numberAt(data, 66) !== count) return undefined
  const first = 130
  const answers: (bigint | undefined)[] = []
  for (let index = 0; index < count; index++) {
    const offset = numberAt(data, first + index * 64)
    if (offset === undefined || offset % 32 !== 0) return undefined
    const begin = first + 2 * offset
    const isDone = numberAt(data, begin)
    const length = numberAt(data, begin + 128)
    if (isDone === undefined || numberAt(data, begin + 64) !== 64 || length === undefined)
      return undefined
    const end = begin + 192 + 2 * length
    if (end > data.length) return undefined
    if (isDone !== 1) answers.push(undefined)
    else answers.push(length < 32 ? 0n : wordAt(data, begin + 192))
  }
  return answers
}

/** A word that is no larger than data can be; undefined for any other, and beyond the end. */
const numberAt = (data: string, begin: number): number | undefined =>
  begin + 64 <= data.length && data.startsWith(shortZeros, begin)
    ? Number.parseInt(data.slice(begin + 64 - exactDigits, begin + 64), 16)
    : undefined

/** The parameter that names a block by its hash, so that no other can answer for it (EIP-1898). */
export const atHash = (block_hash: Uint8Array): object => ({
  blockHash: `0x${Buffer.from(block_hash).toString('hex')}`,
  requireCanonical: true,
})
