import { getDynamicBuilder, getLookupFn } from '@polkadot-api/metadata-builders'
import { decAnyMetadata, unifyMetadata } from '@polkadot-api/substrate-bindings'
import { createEventReaders, type EventReaders } from './events.ts'
import { ScaleError } from './scale.ts'

/** What one runtime's metadata says of how its state is to be read. */
export type Codecs = EventReaders & {
  /** What an account holds: free and reserved, of the hex of its `System.Account`. */
  readBalance(hex: string): bigint
  /** The prefix of the chain's addresses, where the runtime says it. */
  ss58_prefix: number | undefined
}

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
  return {
    ...createEventReaders(lookup(events.type.value)),
    readBalance: (hex) => {
      const { data } = account.dec(hex) as Account
      if (typeof data?.free !== 'bigint' || typeof data.reserved !== 'bigint')
        throw new ScaleError('the accounts of the runtime have no free and reserved balance')
      return data.free + data.reserved
    },
    ss58_prefix: builder.ss58Prefix,
  }
}
