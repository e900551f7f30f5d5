import { createHash } from 'node:crypto'
import { decodeBase58, encodeBase58 } from '../../lib/base58.ts'
import type { Parsed } from '../chain.ts'
import { parsed, parseEvmPattern, refused } from '../hex.ts'

const accountId = /^0x([0-9a-fA-F]{64})$/
const ss58 = /^[1-9A-HJ-NP-Za-km-z]{33,50}$/
const context = Buffer.from('SS58PRE')

const checksum = (bytes: Uint8Array): Buffer =>
  createHash('blake2b512').update(context).update(bytes).digest().subarray(0, 2)

/** Prefixes below 64 take one byte, the rest two (the SS58 registry's own bit order). */
const encodePrefix = (prefix: number): Buffer =>
  prefix < 64
    ? Buffer.from([prefix])
    : Buffer.from([((prefix & 0xfc) >> 2) | 0x40, (prefix >> 8) | ((prefix & 0x03) << 6)])

const parseSs58 = (text: string): Parsed => {
  const bytes = decodeBase58(text)
  const first = bytes?.[0] ?? 255
  const prefixLength = first < 64 ? 1 : 2
  if (!bytes || first > 127 || bytes.length !== prefixLength + 34)
    return refused('Is not an SS58 address of a 32-byte account.')
  const end = bytes.length - 2
  if (!checksum(bytes.subarray(0, end)).equals(bytes.subarray(end)))
    return refused('The checksum is wrong.')
  return parsed(bytes.subarray(prefixLength, end))
}

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

/** The SS58 text of an account with the prefix of the chain. */
export const formatAddress = (account: Uint8Array, prefix: number): string => {
  if (account.length === 0) return ''
  const body = Buffer.concat([encodePrefix(prefix), account])
  return encodeBase58(Buffer.concat([body, checksum(body)]))
}
