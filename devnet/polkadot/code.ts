import { hash } from 'node:crypto'
import { getDynamicBuilder, getLookupFn } from '@polkadot-api/metadata-builders'
import { decAnyMetadata, unifyMetadata } from '@polkadot-api/substrate-bindings'
import { keyText, readCompact, toHex } from './bytes.ts'
import { loadRuntime, type Runtime } from './runtime.ts'
import { createOverlay, type State } from './state.ts'

/** The version of a runtime in the shape of `state_getRuntimeVersion`. */
export type RuntimeVersion = {
  specName: string
  implName: string
  authoringVersion: number
  specVersion: number
  implVersion: number
  apis: [string, number][]
  transactionVersion: number
  stateVersion: number
}

/** A runtime with what is known of it. */
export type Code = Runtime & {
  version: RuntimeVersion
  /** As `state_getMetadata` gives it. */
  metadata: Uint8Array
  slotMs: number
  ss58Prefix: number
  extensions: string[]
  /** What the plain transfer is called: its name has changed. */
  transferCall: 'transfer' | 'transfer_allow_death'
  /** Encodes a call: its place, then its arguments. */
  encodeCall(pallet: string, name: string, value: unknown): Buffer
}

/** Runtimes by their code; a chain has few of them. */
export function createCodes() {
  const byHash = new Map<string, Code>()
  // States in memory share their values; those from the store are new ones every time.
  const seen = new WeakMap<Uint8Array, Code>()
  return (state: State): Code => {
    const bytes = state.get(keyText(Buffer.from(':code')))
    if (!bytes) throw new Error('the chain has no code')
    const found = seen.get(bytes)
    if (found) return found
    const key = hash('sha256', bytes)
    const code = byHash.get(key) ?? openCode(bytes, state)
    byHash.set(key, code)
    seen.set(bytes, code)
    return code
  }
}

function openCode(bytes: Uint8Array, state: State): Code {
  const runtime = loadRuntime(bytes)
  const ask = (entry: string) => runtime.call(entry, new Uint8Array(), createOverlay(state))
  const opaque = ask('Metadata_metadata')
  const metadata = opaque.slice(readCompact(opaque).end)
  const unified = unifyMetadata(decAnyMetadata(metadata))
  const builder = getDynamicBuilder(getLookupFn(unified))
  const { signedExtensions } = unified.extrinsic
  const has = (pallet: string, name: string) => {
    try {
      return Boolean(builder.buildCall(pallet, name))
    } catch {
      return false
    }
  }
  return {
    ...runtime,
    version: readVersion(ask('Core_version')),
    metadata,
    slotMs: Number(Buffer.from(ask('AuraApi_slot_duration')).readBigUInt64LE()),
    ss58Prefix: builder.ss58Prefix ?? 42,
    extensions: (signedExtensions[0] ?? []).map(({ identifier }) => identifier),
    transferCall: has('Balances', 'transfer_allow_death') ? 'transfer_allow_death' : 'transfer',
    encodeCall: (pallet, name, value) => {
      const { codec, location } = builder.buildCall(pallet, name)
      return Buffer.concat([Uint8Array.from(location), codec.enc(value)])
    },
  }
}

function readVersion(bytes: Uint8Array): RuntimeVersion {
  const buffer = Buffer.from(bytes)
  let at = 0
  const length = () => {
    const { value, end } = readCompact(buffer, at)
    at = end
    return value
  }
  const take = (count: number) => {
    at += count
    return buffer.subarray(at - count, at)
  }
  const text = () => take(length()).toString()
  const number = () => take(4).readUInt32LE()
  return {
    specName: text(),
    implName: text(),
    authoringVersion: number(),
    specVersion: number(),
    implVersion: number(),
    apis: Array.from({ length: length() }, () => [toHex(take(8)), number()]),
    transactionVersion: number(),
    stateVersion: buffer[at] ?? 0,
  }
}
