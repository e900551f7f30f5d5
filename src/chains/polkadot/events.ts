import type { LookupEntry } from '@polkadot-api/metadata-builders'
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

/** A field of an event: where it lies, or a number. */
export type EventField = { name: string; account?: Buffer; number?: bigint }

/** An event of a pallet that matters for balances. */
export type BalanceEvent = {
  /** Its number in the block. */
  index: number
  /** The extrinsic that it belongs to; undefined for what the chain does by itself. */
  extrinsic: number | undefined
  pallet: string
  name: string
  fields: readonly EventField[]
}

/** Reads `System.Events` and gives those events that matter for balances. */
export type ReadEvents = (bytes: Buffer) => BalanceEvent[]

/** Who moved what, and who paid for it. Other events are only stepped over. */
const readPallets = new Set([
  'Balances',
  'TransactionPayment',
  'AssetTxPayment',
  'AssetConversionTxPayment',
])

type Reader = {
  pallet: string
  name: string
  skip: Skip
  /** Undefined where the event is of no interest. */
  fields:
    | { name: string; kind: 'account' | 'number' | 'other'; size: number; skip: Skip }[]
    | undefined
}

const numberSizes: Record<string, number> = { u32: 4, u64: 8, u128: 16, u256: 32 }

/** Makes the reader from the type of `System.Events`. */
export function createReadEvents(events: LookupEntry): ReadEvents {
  const skipOf = createSkips()
  const record = events.type === 'sequence' ? events.value : undefined
  if (record?.type !== 'struct') throw new ScaleError('System.Events is no list of records')
  const { phase, event, topics } = record.value
  if (phase?.type !== 'enum' || event?.type !== 'enum' || !topics)
    throw new ScaleError('the records of System.Events have other fields')
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
        ...kindOf(type),
      }))
      list[one.idx] = {
        pallet,
        name,
        skip: inOrder(fields.map(({ skip }) => skip)),
        fields: readPallets.has(pallet) ? fields : undefined,
      }
    }
  }

  return (bytes) => {
    const found: BalanceEvent[] = []
    const count = readCompact(bytes, 0)
    let at = skipCompact(bytes, 0)
    for (let index = 0; index < count; index++) {
      const extrinsic = bytes[at] === applying ? bytes.readUInt32LE(at + 1) : undefined
      at = skipPhase(bytes, at)
      const reader = readers[bytes[at]!]?.[bytes[at + 1]!]
      if (!reader) throw new ScaleError(`event ${index} is none that the metadata has`)
      at += 2
      if (reader.fields) {
        const fields: EventField[] = []
        for (const { name, kind, size, skip } of reader.fields) {
          if (kind === 'account') fields.push({ name, account: bytes.subarray(at, at + size) })
          else if (kind === 'number') fields.push({ name, number: readUint(bytes, at, size) })
          at = skip(bytes, at)
        }
        const { pallet, name } = reader
        found.push({ index, extrinsic, pallet, name, fields })
      } else at = reader.skip(bytes, at)
      at = skipTopics(bytes, at)
    }
    // Bytes that are left over mean that they were read with the metadata of another runtime.
    if (at !== bytes.length) throw new ScaleError('the events end elsewhere')
    return found
  }
}

function kindOf(type: LookupEntry): { kind: 'account' | 'number' | 'other'; size: number } {
  if (type.type === 'AccountId32') return { kind: 'account', size: 32 }
  const size = type.type === 'primitive' ? numberSizes[type.value] : undefined
  return size === undefined ? { kind: 'other', size: 0 } : { kind: 'number', size }
}
