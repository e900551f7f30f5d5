// Events are decoded here and not by the general library: most of them are only stepped over, and only those that matter for
// balances are read.

import type { LookupEntry } from '@polkadot-api/metadata-builders'
import type { BalanceEvent, EventField, EventMark } from './balance-event.ts'
import { isTokenChange } from './ledger.ts'
import {
  createSkips,
  inOrder,
  readCompact,
  readUint,
  ScaleError,
  type Skip,
  skipCompact,
  variantFields,
} from './scale.ts'
import { isTokenPallet } from './token.ts'

/**
 * Reads `System.Events` and gives those events that matter for balances. Where the bytes cannot be decoded to
 * their end, `found` has those before the failure.
 */
export type ReadEvents = (bytes: Buffer, found?: BalanceEvent[]) => BalanceEvent[]

/** The readers of one runtime. */
export type EventReaders = {
  readEvents: ReadEvents
  /**
   * Every event, by its number, up to where they cannot be decoded. Read only where a movement needs an
   * explanation.
   */
  outlineEvents(bytes: Buffer): EventMark[]
}

/** Who moved what, and who paid for it. Other events are only stepped over. */
const readPallets = new Set([
  'Balances',
  'TransactionPayment',
  'AssetTxPayment',
  'AssetConversionTxPayment',
])

/** A slash of held coin has no event of Balances: the account is read again. */
const slashes = new Set(['Staking.Slashed', 'DelegatedStaking.Slashed'])

const isRead = (pallet: string, name: string): boolean =>
  readPallets.has(pallet) || isTokenChange(pallet, name) || slashes.has(`${pallet}.${name}`)

// Events that carry the id of a message between chains; older runtimes have it in other pallets.
const messageEvents = new Set([
  'MessageQueue.Processed',
  'DmpQueue.ExecutedDownward',
  'Ump.ExecutedUpward',
  'PolkadotXcm.Sent',
  'XcmPallet.Sent',
])
const messageFields = new Set(['id', 'message_id', '0'])

type Reader = {
  pallet: string
  name: string
  skip: Skip
  /** Undefined where the event is of no interest. */
  fields: Field[] | undefined
  /** The fields of an event that names a message. */
  message: Field[] | undefined
}

type Kind = 'account' | 'number' | 'hash' | 'token' | 'other'
type Field = { name: string; kind: Kind; size: number; skip: Skip }

const numberSizes: Record<string, number> = { u32: 4, u64: 8, u128: 16, u256: 32 }

/** Makes the readers from the type of `System.Events`. */
export function createEventReaders(events: LookupEntry): EventReaders {
  const skipOf = createSkips()
  const record = events.type === 'sequence' ? events.value : undefined
  if (record?.type !== 'struct') throw new ScaleError('System.Events is no list of records')
  const { phase, event, topics } = record.value
  if (phase?.type !== 'enum' || event?.type !== 'enum' || !topics)
    throw new ScaleError('the records of System.Events have other fields')
  // Only events of this phase belong to an extrinsic; the others are of the block itself.
  const applying = phase.value.ApplyExtrinsic?.idx
  const skipPhase = skipOf(phase)
  const skipTopics = skipOf(topics)

  const readers: (Reader | undefined)[][] = []
  for (const [pallet, variant] of Object.entries(event.value)) {
    const inner = variant.type === 'lookupEntry' ? variant.value : undefined
    if (inner?.type !== 'enum') throw new ScaleError(`the events of ${pallet} are no enum`)
    const list: (Reader | undefined)[] = []
    readers[variant.idx] = list
    for (const [name, one] of Object.entries(inner.value)) {
      const fields = variantFields(one).map(({ name: field, type }) => ({
        name: field,
        skip: skipOf(type),
        ...(isTokenPallet(pallet) && field === 'asset_id'
          ? { kind: 'token' as const, size: 0 }
          : kindOf(type)),
      }))
      list[one.idx] = {
        pallet,
        name,
        skip: inOrder(fields.map(({ skip }) => skip)),
        fields: isRead(pallet, name) ? fields : undefined,
        message: messageEvents.has(`${pallet}.${name}`) ? fields : undefined,
      }
    }
  }

  /** Walks over all events; `read` gives the place after the fields of one. */
  const walk = (
    bytes: Buffer,
    read: (reader: Reader, at: number, begin: number, index: number) => number,
  ): void => {
    const count = readCompact(bytes, 0)
    // An event has more bytes than one: a count beyond that is none.
    if (count > bytes.length) throw new ScaleError('the count of the events is beyond their bytes')
    let at = skipCompact(bytes, 0)
    for (let index = 0; index < count; index++) {
      const begin = at
      at = skipPhase(bytes, at)
      // Two bytes name an event: the pallet and the variant, by the numbers of the metadata.
      const reader = readers[bytes[at]!]?.[bytes[at + 1]!]
      if (!reader) throw new ScaleError(`event ${index} is none that the metadata has`)
      at = skipTopics(bytes, read(reader, at + 2, begin, index))
    }
    // Bytes that are left over mean that they were read with the metadata of another runtime.
    if (at !== bytes.length) throw new ScaleError('the events end elsewhere')
  }
  const extrinsicAt = (bytes: Buffer, begin: number): number | undefined => {
    if (bytes[begin] !== applying) return undefined
    if (begin + 5 > bytes.length) throw new ScaleError('ends too early')
    return bytes.readUInt32LE(begin + 1)
  }

  return {
    readEvents: (bytes, found = []) => {
      walk(bytes, (reader, at, begin, index) => {
        if (!reader.fields) return reader.skip(bytes, at)
        let end = at
        const fields: EventField[] = []
        for (const { name, kind, size, skip } of reader.fields) {
          if (kind === 'account') fields.push({ name, account: bytes.subarray(end, end + size) })
          else if (kind === 'number') fields.push({ name, number: readUint(bytes, end, size) })
          const after = skip(bytes, end)
          if (kind === 'token') fields.push({ name, token_id: bytes.subarray(end, after) })
          end = after
        }
        const { pallet, name } = reader
        found.push({ index, extrinsic: extrinsicAt(bytes, begin), pallet, name, fields })
        return end
      })
      return found
    },
    outlineEvents: (bytes) => {
      const marks: EventMark[] = []
      const read = (reader: Reader, at: number, begin: number): number => {
        const { pallet, name, message } = reader
        const phase = `${bytes[begin]}/${extrinsicAt(bytes, begin) ?? ''}`
        const mark: EventMark = { phase, pallet, name }
        let end = at
        for (const field of message ?? []) {
          if (field.kind === 'hash' && messageFields.has(field.name))
            mark.message_id = bytes.subarray(end, end + field.size)
          end = field.skip(bytes, end)
        }
        marks.push(mark)
        return message ? end : reader.skip(bytes, at)
      }
      try {
        walk(bytes, read)
      } catch (error) {
        if (!(error instanceof ScaleError)) throw error
      }
      return marks
    },
  }
}

function kindOf(type: LookupEntry): { kind: Kind; size: number } {
  if (type.type === 'AccountId32') return { kind: 'account', size: 32 }
  if (type.type === 'array' && type.len === 32 && isByte(type.value))
    return { kind: 'hash', size: 32 }
  const size = type.type === 'primitive' ? numberSizes[type.value] : undefined
  return size === undefined ? { kind: 'other', size: 0 } : { kind: 'number', size }
}

const isByte = (type: LookupEntry): boolean => type.type === 'primitive' && type.value === 'u8'
