import { Blake2128Concat, Twox64Concat, Twox128 } from '@polkadot-api/substrate-bindings'
import { toHex } from '../hex.ts'
import type { Token } from './token.ts'

const keyOf = (pallet: string, item: string): string =>
  toHex(Buffer.concat([Twox128(Buffer.from(pallet)), Twox128(Buffer.from(item))]))

/** Where the events of a block are in the state after it. */
export const eventsKey = keyOf('System', 'Events')

/** Where the time of a block is, in milliseconds. */
export const nowKey = keyOf('Timestamp', 'Now')

/**
 * Where the version of the runtime is that executed the block: a runtime writes it down when it
 * begins its first block, so it is not yet there when only the code has been exchanged.
 */
export const executedByKey = keyOf('System', 'LastRuntimeUpgrade')

const accounts = keyOf('System', 'Account')

const hashed = (key: Uint8Array): string =>
  Buffer.from(Blake2128Concat(Uint8Array.from(key))).toString('hex')

/** Where an account's balance is. */
export const accountKey = (account: Uint8Array): string => accounts + hashed(account)

/** Where an account's balance of a token is. */
export const tokenAccountKey = ({ pallet, id }: Token, account: Uint8Array): string =>
  keyOf(pallet, 'Account') + hashed(id) + hashed(account)

/** Where a token is, if the chain has it. */
export const tokenDetailsKey = ({ pallet, id }: Token): string =>
  keyOf(pallet, 'Asset') + hashed(id)

/** Where the name, symbol and decimals of a token are. */
export const tokenMetadataKey = ({ pallet, id }: Token): string =>
  keyOf(pallet, 'Metadata') + hashed(id)

// Of the relay chain.

/** The number of the set of authorities. */
export const setIdKey = keyOf('Grandpa', 'CurrentSetId')

/** The authorities. */
export const authoritiesKey = keyOf('Grandpa', 'Authorities')

/** The authorities in runtimes before 2024, behind a version. */
export const oldAuthoritiesKey = toHex(Buffer.from(':grandpa_authorities'))

/** The head of a parachain. */
export const paraHeadKey = (id: number): string => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(id)
  return keyOf('Paras', 'Heads') + Buffer.from(Twox64Concat(Uint8Array.from(bytes))).toString('hex')
}
