import type { Parsed } from '../chain.ts'
import { parsed, parseEvmPattern, refused } from '../hex.ts'

const raw = /^(-1|0):([0-9a-fA-F]{64})$/
const friendly = /^[0-9A-Za-z+/_-]{48}$/

// Flags of the first byte. A wallet shows bounceable addresses for contracts and others for people.
const bounceable = 0x11
const nonBounceable = 0x51
const testOnly = 0x80

/** CRC16/XMODEM, the checksum of the user-friendly form. */
const crc16 = (bytes: Uint8Array): number => {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
    crc &= 0xffff
  }
  return crc
}

/** The stored form: the workchain as one signed byte, then the account. */
const join = (workchain: number, account: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([workchain & 0xff]), account])

const parseFriendly = (text: string, production: boolean): Parsed => {
  const mixed = /[+/]/.test(text) && /[-_]/.test(text)
  const bytes = Buffer.from(text, 'base64')
  // Node skips what is not base64 and reads both alphabets at once.
  if (mixed || bytes.length !== 36) return refused('Is not a user-friendly address.')
  if (crc16(bytes.subarray(0, 34)) !== bytes.readUInt16BE(34))
    return refused('The checksum is wrong. Mind upper and lower case.')
  const tag = bytes[0]! & ~testOnly
  if (tag !== bounceable && tag !== nonBounceable) return refused('Is of an unknown kind.')
  if (production && bytes[0]! & testOnly) return refused('Is for test networks only.')
  const workchain = bytes.readInt8(1)
  if (workchain !== 0 && workchain !== -1) return refused('Must be of workchain 0 or -1.')
  return parsed(join(workchain, bytes.subarray(2, 34)))
}

/** Reads a raw or user-friendly address, or the EVM pattern as an account of workchain 0. */
export const parseAddress = (text: string, { production = true } = {}): Parsed => {
  const [, workchain, account] = raw.exec(text) ?? []
  // Raw form first: it is what the service prints.
  if (workchain !== undefined && account !== undefined)
    return parsed(join(Number(workchain), Buffer.from(account, 'hex')))
  // The specification asks for the EVM pattern in T as well; the 20 bytes become the end of an
  // account.
  const evm = parseEvmPattern(text)
  if (evm) return parsed(join(0, Buffer.concat([Buffer.alloc(12), evm])))
  if (friendly.test(text)) return parseFriendly(text, production)
  return refused(
    'Must be workchain:hex with workchain 0 or -1, the 48-character form, or 0x and 40 lower-case hex digits.',
  )
}

/** `workchain:hex` in lower case. */
export const formatAddress = (address: Uint8Array): string =>
  address.length === 0
    ? ''
    : `${Buffer.from(address).readInt8(0)}:${Buffer.from(address).toString('hex', 1)}`

/**
 * The 48-character form, url-safe and non-bounceable: money sent to an account that is not deployed
 * yet would come back from a bounceable one.
 */
export const formatUserFriendly = (address: Uint8Array, { production = true } = {}): string => {
  if (address.length === 0) return ''
  const head = Buffer.concat([
    Buffer.from([production ? nonBounceable : nonBounceable | testOnly]),
    address,
  ])
  const crc = Buffer.alloc(2)
  crc.writeUInt16BE(crc16(head))
  return Buffer.concat([head, crc]).toString('base64url')
}
