// Decoding depends on the runtime, which changes while the chain runs: codecs are made from the metadata of the runtime that the
// block was made with.

import { getDynamicBuilder, getLookupFn } from '@polkadot-api/metadata-builders'
import { decAnyMetadata, unifyMetadata } from '@polkadot-api/substrate-bindings'
import { readDecimals, readTokenText } from '../token-text.ts'
import type { TokenInfo } from '../tokens.ts'
import { createEventReaders, type EventReaders } from './events.ts'
import { ScaleError } from './scale.ts'
import type { TokenPallet } from './token.ts'

/** What one runtime's metadata says of how its state is to be read. */
export type Codecs = EventReaders & {
  /** What an account holds: free and reserved, of the hex of its `System.Account`. */
  readBalance(hex: string): bigint
  /** What an account holds of a token, of the hex of its `Account` in the pallet. */
  readTokenBalance(pallet: TokenPallet, hex: string): bigint
  /** What a token says of itself, of the hex of its `Metadata`. */
  readTokenInfo(pallet: TokenPallet, hex: string): TokenInfo
  /** The prefix of the chain's addresses, where the runtime says it. */
  ss58_prefix: number | undefined
}

type TokenMetadata = { name: unknown; symbol: unknown; decimals?: number }

type Account = { data?: { free?: unknown; reserved?: unknown } }

/** Makes the codecs of a runtime from its metadata, of any version from 14 to 16. */
export function createCodecs(metadata: Uint8Array): Codecs {
  // The decoders take the whole buffer below a view: they must never get a part of one.
  const unified = unifyMetadata(decAnyMetadata(Uint8Array.from(metadata)))
  const lookup = getLookupFn(unified)
  const builder = getDynamicBuilder(lookup)
  const events = unified.pallets
    .find(({ name }) => name === 'System')
    ?.storage?.items.find(({ name }) => name === 'Events')
  if (events?.type.tag !== 'plain') throw new ScaleError('the runtime has no System.Events')
  const account = builder.buildStorage('System', 'Account').value
  const tokenStorage = (pallet: TokenPallet, item: string) =>
    builder.buildStorage(pallet, item).value
  return {
    ...createEventReaders(lookup(events.type.value)),
    // The library is typed by the metadata it was built for; other runtimes are checked here.
    readBalance: (hex) => {
      const { data } = account.dec(hex) as Account
      if (typeof data?.free !== 'bigint' || typeof data.reserved !== 'bigint')
        throw new ScaleError('the accounts of the runtime have no free and reserved balance')
      return data.free + data.reserved
    },
    readTokenBalance: (pallet, hex) => {
      const { balance } = tokenStorage(pallet, 'Account').dec(hex) as { balance?: unknown }
      if (typeof balance !== 'bigint')
        throw new ScaleError(`the accounts of ${pallet} have no balance`)
      return balance
    },
    readTokenInfo: (pallet, hex) => {
      const { name, symbol, decimals } = tokenStorage(pallet, 'Metadata').dec(hex) as TokenMetadata
      return { name: textOf(name), symbol: textOf(symbol), decimals: readDecimals(decimals) }
    },
    ss58_prefix: builder.ss58Prefix,
  }
}

/** Bytes as the library gives them. A token may name itself by any bytes. */
function textOf(value: unknown): string | null {
  const bytes =
    value instanceof Uint8Array
      ? value
      : typeof value === 'string'
        ? Buffer.from(value.slice(2), 'hex')
        : (value as { asBytes(): Uint8Array }).asBytes()
  return readTokenText(Buffer.from(bytes).toString('utf8'))
}
