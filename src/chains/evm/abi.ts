import { hash } from 'node:crypto'

const word = (value: bigint): string => value.toString(16).padStart(64, '0')

/** The data of a call whose arguments are single words. */
export const encodeCall = (signature: string, ...args: (bigint | Uint8Array)[]): string => {
  const selector = hash('keccak-256', signature, 'hex').slice(0, 8)
  const words = args.map((arg) =>
    typeof arg === 'bigint' ? word(arg) : Buffer.from(arg).toString('hex').padStart(64, '0'),
  )
  return `0x${selector}${words.join('')}`
}

/** The word at an index of returned data; undefined beyond its end. */
export const readWord = (data: string, index = 0): bigint | undefined => {
  const digits = data.slice(2 + index * 64, 66 + index * 64)
  return digits.length === 64 ? BigInt(`0x${digits}`) : undefined
}

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

/** The data of an `aggregate3` call of Multicall3 in which every call may fail. */
export function encodeAggregate(calls: readonly { to: string; data: string }[]): string {
  const selector = hash('keccak-256', 'aggregate3((address,bool,bytes)[])', 'hex').slice(0, 8)
  const bodies = calls.map(({ to, data }) => {
    const digits = data.slice(2)
    const padded = digits.padEnd(Math.ceil(digits.length / 64) * 64, '0')
    const address = to.slice(2).toLowerCase().padStart(64, '0')
    return [address, word(1n), word(96n), word(BigInt(digits.length / 2)), padded].join('')
  })
  let offset = calls.length * 32
  const offsets = bodies.map((body) => {
    const at = word(BigInt(offset))
    offset += body.length / 2
    return at
  })
  return `0x${selector}${word(32n)}${word(BigInt(calls.length))}${offsets.join('')}${bodies.join('')}`
}

/** What `aggregate3` returned: the data of each call, undefined where it failed. */
export function decodeAggregate(data: string, count: number): (string | undefined)[] | undefined {
  const start = Number(readWord(data) ?? -1n) / 32
  if (start !== 1 || readWord(data, start) !== BigInt(count)) return undefined
  const first = start + 1
  const answers: (string | undefined)[] = []
  for (let index = 0; index < count; index++) {
    const at = first + Number(readWord(data, first + index) ?? -1n) / 32
    if (!Number.isInteger(at) || at < first) return undefined
    const isDone = readWord(data, at)
    const offset = readWord(data, at + 1)
    if (isDone === undefined || offset !== 64n) return undefined
    const length = Number(readWord(data, at + 2) ?? -1n)
    const begin = 2 + (at + 3) * 64
    const digits = data.slice(begin, begin + length * 2)
    if (!(length >= 0) || digits.length !== length * 2) return undefined
    answers.push(isDone === 1n ? `0x${digits}` : undefined)
  }
  return answers
}

/** The parameter that names a block by its hash, so that no other can answer for it (EIP-1898). */
export const atHash = (block_hash: Uint8Array): object => ({
  blockHash: `0x${Buffer.from(block_hash).toString('hex')}`,
  requireCanonical: true,
})
