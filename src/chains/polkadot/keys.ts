import { Blake2128Concat, Twox128 } from '@polkadot-api/substrate-bindings'
import { toHex } from '../hex.ts'

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

/** Where an account's balance is. */
export const accountKey = (account: Uint8Array): string =>
  accounts + Buffer.from(Blake2128Concat(Uint8Array.from(account))).toString('hex')
