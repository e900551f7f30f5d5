import { createHash } from 'node:crypto'
import { decodeBase58, encodeBase58 } from '../../lib/base58.ts'
import type { Parsed } from '../chain.ts'
import { parsed, parseEvmPattern, refused } from '../hex.ts'

const accountId = /^0x([0-9a-fA-F]{64})$/
const ss58 = /^[1-9A-HJ-NP-Za-km-z]{33,50}$/

/** Whether the first byte begins a prefix: one byte below 64, two bytes below 128, the rest is reserved. */
const prefixLength = (first: number): number | undefined =>
  first < 64 ? 1 : first < 128 ? 2 : undefined

const parseSs58 = (text: string): Parsed => {
  const bytes = decodeBase58(text)
  const length = prefixLength(bytes?.[0] ?? 255)
  // The prefix, 32 bytes of the account and two of the checksum.
  if (!bytes || length === undefined || bytes.length !== length + 34)
    return refused('Is not an SS58 address of a 32-byte account.')
  const body = bytes.subarray(0, -2)
  return checksumOf(body).equals(bytes.subarray(-2))
    ? parsed(Buffer.from(body.subarray(length)))
    : refused('The checksum is wrong.')
}

// Not by the library, which every start would load for it.
const checksumOf = (body: Uint8Array): Buffer =>
  createHash('blake2b512').update('SS58PRE').update(body).digest().subarray(0, 2)

/**
 * Reads an SS58 address of any prefix, an account id, or the EVM pattern as the account that Asset
 * Hub gives an Ethereum address: its 20 bytes and 12 times 0xEE.
 */
export const parseAddress = (text: string): Parsed => {
  const digits = accountId.exec(text)?.[1]
  if (digits !== undefined) return parsed(Buffer.from(digits, 'hex'))
  const evm = parseEvmPattern(text)
  if (evm) return parsed(Buffer.concat([evm, Buffer.alloc(12, 0xee)]))
  if (ss58.test(text)) return parseSs58(text)
  return refused(
    'Must be an SS58 address, an account id (0x and 64 hex digits), or 0x and 40 lower-case hex digits.',
  )
}

/**
 * The SS58 text of an account with the prefix of the chain. Not by `fromBufferToBase58` of the dependency: it
 * caches by the whole underlying buffer, so that two accounts in one buffer may get the same address, and it
 * takes twice the time (15 µs instead of 8 µs).
 */
export const formatAddress = (account: Uint8Array, prefix: number): string => {
  if (account.length === 0) return ''
  const body = Buffer.concat([encodePrefix(prefix), account])
  // Two bytes are the checksum length for accounts of 32 bytes.
  return encodeBase58(Buffer.concat([body, checksumOf(body)]))
}

/** Prefixes below 64 take one byte, the rest two, in the bit order of the SS58 registry. */
const encodePrefix = (prefix: number): Buffer =>
  prefix < 64
    ? Buffer.from([prefix])
    : Buffer.from([((prefix & 0xfc) >> 2) | 0x40, (prefix >> 8) | ((prefix & 0x03) << 6)])
