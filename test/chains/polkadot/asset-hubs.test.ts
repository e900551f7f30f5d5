import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { getDynamicBuilder, getLookupFn, type LookupEntry } from '@polkadot-api/metadata-builders'
import { AccountId, decAnyMetadata, unifyMetadata } from '@polkadot-api/substrate-bindings'
import { describe, expect, it } from 'vitest'
import { inherentsOf } from '../../../devnet/polkadot/inherents.ts'
import { signedExtensions } from '../../../devnet/polkadot/sign.ts'
import type { Movement } from '../../../src/chains/chain.ts'
import { createBlock } from '../../../src/chains/polkadot/block.ts'
import { createCodecs } from '../../../src/chains/polkadot/codecs.ts'
import { createPolkadotFamily } from '../../../src/chains/polkadot/family.ts'
import { variantFields } from '../../../src/chains/polkadot/scale.ts'
import { contentOf, feesOf, netOf } from './harness.ts'

const fixtures = join(import.meta.dirname, '../../fixtures/polkadot')
const hubs = ['statemint-2003001.v16', 'statemine-2003000.v16', 'westmint-1018005.v15']
const read = (name: string): Uint8Array =>
  Uint8Array.from(gunzipSync(readFileSync(join(fixtures, `metadata/${name}.gz`))))

const typesPackage = '@polkadot/types-support'
const relayChain = async (): Promise<Uint8Array> => {
  const { default: hex } = await import(`${typesPackage}/metadata/v15/polkadot-hex`)
  const bytes = Buffer.from(String(hex).slice(2), 'hex')
  return Uint8Array.from(bytes.subarray(bytes.indexOf('meta')))
}

const shapeOf = (type: LookupEntry): string =>
  type.type === 'primitive' ? type.value : type.type === 'array' ? `[${type.len}]` : type.type

/** The events of some pallets as text: `Balances.Minted` has `who AccountId32, amount u128`. */
function eventsIn(metadata: Uint8Array, pallets: readonly string[]): Map<string, string> {
  const unified = unifyMetadata(decAnyMetadata(metadata))
  const lookup = getLookupFn(unified)
  const item = unified.pallets
    .find(({ name }) => name === 'System')!
    .storage!.items.find(({ name }) => name === 'Events')!
  const list = lookup(item.type.value as number)
  const record = list.type === 'sequence' ? list.value : undefined
  const event = record?.type === 'struct' ? record.value.event : undefined
  if (event?.type !== 'enum') throw new Error('System.Events has another form')
  const found = new Map<string, string>()
  for (const [pallet, variant] of Object.entries(event.value)) {
    const inner = variant.type === 'lookupEntry' ? variant.value : undefined
    if (!pallets.includes(pallet) || inner?.type !== 'enum') continue
    for (const [name, one] of Object.entries(inner.value))
      found.set(
        `${pallet}.${name}`,
        variantFields(one)
          .map(({ name: field, type }) => `${field} ${shapeOf(type)}`)
          .join(', '),
      )
  }
  return found
}

const one = 'who AccountId32, amount u128'
const held = `reason enum, ${one}`

/** The events that the code reads, with their fields, and whether a runtime may lack them. */
const known: Record<string, string> = {
  'Balances.Transfer': 'from AccountId32, to AccountId32, amount u128',
  'Balances.ReserveRepatriated':
    'from AccountId32, to AccountId32, amount u128, destination_status enum',
  'Balances.Deposit': one,
  'Balances.Withdraw': one,
  'Balances.Slashed': one,
  'Balances.Minted': one,
  'Balances.Burned': one,
  'Balances.Suspended': one,
  'Balances.Restored': one,
  'Balances.DustLost': 'account AccountId32, amount u128',
  'TransactionPayment.TransactionFeePaid': 'who AccountId32, actual_fee u128, tip u128',
  'AssetTxPayment.AssetTxFeePaid': 'who AccountId32, actual_fee u128, tip u128, asset_id struct',
  'MessageQueue.Processed': 'id [32], origin enum, weight_used struct, success bool',
  'PolkadotXcm.Sent': 'origin struct, destination struct, message sequence, message_id [32]',
  'Staking.Slashed': 'staker AccountId32, amount u128',
  'Assets.Issued': 'asset_id u32, owner AccountId32, amount u128',
  'Assets.Transferred': 'asset_id u32, from AccountId32, to AccountId32, amount u128',
  'Assets.Burned': 'asset_id u32, owner AccountId32, balance u128',
  'ForeignAssets.Issued': 'asset_id struct, owner AccountId32, amount u128',
  'ForeignAssets.Transferred': 'asset_id struct, from AccountId32, to AccountId32, amount u128',
  'ForeignAssets.Burned': 'asset_id struct, owner AccountId32, balance u128',
}

/** Those that only some runtimes have. */
const newer: Record<string, string> = {
  'Staking.Slashed': known['Staking.Slashed']!,
  'DelegatedStaking.Slashed': 'agent AccountId32, delegator AccountId32, amount u128',
  'Balances.BurnedHeld': held,
  'Balances.TransferOnHold': 'reason enum, source AccountId32, dest AccountId32, amount u128',
  'Balances.TransferAndHold': 'reason enum, source AccountId32, dest AccountId32, transferred u128',
  'Assets.Deposited': 'asset_id u32, who AccountId32, amount u128',
  'Assets.Withdrawn': 'asset_id u32, who AccountId32, amount u128',
  'ForeignAssets.Deposited': 'asset_id struct, who AccountId32, amount u128',
  'ForeignAssets.Withdrawn': 'asset_id struct, who AccountId32, amount u128',
}

/** Those with an account and an amount that change no balance, or whose change another event says. */
const neutral = new Set([
  ...['Endowed', 'BalanceSet', 'Reserved', 'Unreserved', 'Locked', 'Unlocked'],
  ...['Frozen', 'Thawed', 'Held', 'Released'],
  // Of the pallets of tokens.
  ...['ApprovedTransfer', 'TransferredApproved'],
])

describe.each(hubs)('the runtime %s', (name) => {
  const metadata = read(name)
  const pallets = [...new Set(Object.keys({ ...known, ...newer }).map((one) => one.split('.')[0]!))]
  const found = eventsIn(metadata, pallets)

  it('has every event that is read, with the fields that are read', () => {
    const changed = Object.entries(known)
      .filter(([event, fields]) => found.get(event) !== fields)
      .map(([event, fields]) => `${event}: ${fields} -> ${found.get(event) ?? 'missing'}`)
    expect(changed).toEqual([])
    const different = Object.entries(newer)
      .filter(([event, fields]) => found.has(event) && found.get(event) !== fields)
      .map(([event, fields]) => `${event}: ${fields} -> ${found.get(event)}`)
    expect(different).toEqual([])
  })

  it('has no further event that names an account and an amount', () => {
    const further = [...found]
      .filter(([event, fields]) => {
        const [pallet, own] = event.split('.') as [string, string]
        return (
          ['Balances', 'Assets', 'ForeignAssets'].includes(pallet) &&
          /AccountId32.*u128/.test(fields) &&
          !(event in known || event in newer || neutral.has(own))
        )
      })
      .map(([event, fields]) => `${event}: ${fields}`)
    expect(further).toEqual([])
  })

  it('has the storage that is read', () => {
    const unified = unifyMetadata(decAnyMetadata(metadata))
    const itemOf = (pallet: string, item: string) =>
      unified.pallets
        .find((one) => one.name === pallet)
        ?.storage?.items.find((one) => one.name === item)?.type
    const hashersOf = (pallet: string, item: string) => {
      const type = itemOf(pallet, item)
      return type?.tag === 'map' ? type.value.hashers.map(({ tag }) => tag) : type?.tag
    }
    expect({
      'System.Account': hashersOf('System', 'Account'),
      'System.LastRuntimeUpgrade': hashersOf('System', 'LastRuntimeUpgrade'),
      'Timestamp.Now': hashersOf('Timestamp', 'Now'),
      'Assets.Account': hashersOf('Assets', 'Account'),
      'Assets.Asset': hashersOf('Assets', 'Asset'),
      'Assets.Metadata': hashersOf('Assets', 'Metadata'),
      'ForeignAssets.Account': hashersOf('ForeignAssets', 'Account'),
      'ForeignAssets.Metadata': hashersOf('ForeignAssets', 'Metadata'),
    }).toEqual({
      'System.Account': ['Blake2128Concat'],
      'System.LastRuntimeUpgrade': 'plain',
      'Timestamp.Now': 'plain',
      'Assets.Account': ['Blake2128Concat', 'Blake2128Concat'],
      'Assets.Asset': ['Blake2128Concat'],
      'Assets.Metadata': ['Blake2128Concat'],
      'ForeignAssets.Account': ['Blake2128Concat', 'Blake2128Concat'],
      'ForeignAssets.Metadata': ['Blake2128Concat'],
    })
    const builder = getDynamicBuilder(getLookupFn(unified))
    const codecs = createCodecs(metadata)
    for (const pallet of ['Assets', 'ForeignAssets'] as const) {
      const account = builder.buildStorage(pallet, 'Account').value.enc({
        balance: 77n,
        status: { type: 'Liquid', value: undefined },
        reason: { type: 'Sufficient', value: undefined },
        extra: undefined,
      })
      expect(codecs.readTokenBalance(pallet, `0x${Buffer.from(account).toString('hex')}`)).toBe(77n)
      const described = builder.buildStorage(pallet, 'Metadata').value.enc({
        deposit: 1n,
        name: new TextEncoder().encode('Tether USD'),
        symbol: new TextEncoder().encode('USDT'),
        decimals: 6,
        is_frozen: false,
      })
      expect(codecs.readTokenInfo(pallet, `0x${Buffer.from(described).toString('hex')}`)).toEqual({
        name: 'Tether USD',
        symbol: 'USDT',
        decimals: 6,
      })
    }
  })
})

describe('block 19,772,575 of Polkadot', () => {
  type Row = [number | null, string, Record<string, string | number>]
  const rows: Row[] = JSON.parse(readFileSync(join(fixtures, 'block-19772575.json'), 'utf8'))
  const bytesOf = (address: string) => Buffer.from(AccountId().enc(address))

  it('shows 61.21 DOT that came from another chain, and adds up for every account', async () => {
    const metadata = await relayChain()
    const builder = getDynamicBuilder(getLookupFn(unifyMetadata(decAnyMetadata(metadata))))
    const records = rows.map(([extrinsic, event, fields]) => {
      const [pallet, name] = event.split('.') as [string, string]
      const value =
        pallet === 'MessageQueue'
          ? {
              id: fields.id,
              origin: { type: 'Ump', value: { type: 'Para', value: fields.para } },
              weight_used: { ref_time: 251_822_000n, proof_size: 7_186n },
              success: true,
            }
          : Object.fromEntries(
              Object.entries(fields).map(([key, text]) => [
                key,
                /^\d+$/.test(String(text)) ? BigInt(text) : text,
              ]),
            )
      return {
        phase:
          extrinsic === null
            ? { type: 'Initialization', value: undefined }
            : { type: 'ApplyExtrinsic', value: extrinsic },
        event: { type: pallet, value: { type: name, value } },
        topics: [],
      }
    })
    const events = Buffer.from(builder.buildStorage('System', 'Events').value.enc(records))
    const codecs = createCodecs(metadata)
    const block = createBlock({
      ...{ number: 19_772_575, hash: Buffer.alloc(32, 9), parent_hash: Buffer.alloc(32, 8) },
      ...{ time: 0, native: createPolkadotFamily().native },
      extrinsics: ['0x0404', '0x0404', '0x0484', '0x0484'],
      events: codecs.readEvents(events),
      outline: () => codecs.outlineEvents(events),
    })
    const receiver = bytesOf('13dxLrnZjgEWujBnmn2QJYf7QNRLFGS8MYHFwkXTbPCswVBm')
    expect(contentOf(block, [receiver]).movements).toMatchObject([
      {
        ...{ from: Buffer.alloc(0), to: receiver, value: 612_127_082_591n },
        transaction_hash: Buffer.alloc(32, 9),
        detail: {
          source: 'system',
          event: 'Balances.Deposit',
          pallet: 'MessageQueue',
          xcm_message_id: '0x3d27064a3beb3a3bc8c5e2e249cbb127306210fef7912e17362c59f947d52556',
        },
      },
    ])
    const changes = new Map<string, bigint>()
    const change = (address: string | number | undefined, amount: bigint) =>
      changes.set(String(address), (changes.get(String(address)) ?? 0n) + amount)
    for (const [, event, fields] of rows) {
      const amount = BigInt(fields.amount ?? 0)
      if (event === 'Balances.Deposit') change(fields.who, amount)
      if (event === 'Balances.Withdraw') change(fields.who, -amount)
      if (event === 'Balances.Transfer') {
        change(fields.from, -amount)
        change(fields.to, amount)
      }
    }
    expect(changes.size).toBe(10)
    for (const [address, amount] of changes) {
      const account = bytesOf(address)
      const movements: readonly Movement[] = contentOf(block, [account]).movements
      expect(netOf(account, movements) - feesOf(account, movements)).toBe(amount)
    }
  })
})

describe.each(hubs)('the dev node writes for %s', (name) => {
  const unified = unifyMetadata(decAnyMetadata(read(name)))
  const lookup = getLookupFn(unified)
  const builder = getDynamicBuilder(lookup)

  it('the inherents that its blocks begin with', () => {
    const calls = new Map<string, unknown>()
    const encodeCall = (pallet: string, call: string, value: unknown) => {
      const { codec } = builder.buildCall(pallet, call)
      const bytes = Buffer.from(codec.enc(value))
      calls.set(`${pallet}.${call}`, codec.dec(Uint8Array.from(bytes)))
      return bytes
    }
    const outside = {
      ...{ number: 7, time: 84_000, slot: 7, para_id: 1_000, goAhead: false },
      parentHeader: Uint8Array.of(1, 2, 3),
    }
    inherentsOf({ encodeCall, slotMs: 12_000 }, outside)
    expect(calls.get('Timestamp.set')).toEqual({ now: 84_000n })
    const { data } = calls.get('ParachainSystem.set_validation_data') as {
      data: { validation_data: object; relay_chain_state: unknown[] }
    }
    expect(data.validation_data).toMatchObject({ relay_parent_number: 1_014 })
    // Configuration, slot and head, each a leaf, and the branches above them.
    expect(data.relay_chain_state.length).toBeGreaterThanOrEqual(4)
  })

  it('what every extension of a signed extrinsic adds', () => {
    const isEmpty = (id: number): boolean => {
      const type = lookup(id)
      if (type.type === 'void') return true
      return type.type === 'tuple' && type.value.length === 0
    }
    const needed = (unified.extrinsic.signedExtensions[0] ?? [])
      .filter(({ type, additionalSigned }) => !isEmpty(type) || !isEmpty(additionalSigned))
      .map(({ identifier }) => identifier)
    expect(needed.filter((one) => !signedExtensions.includes(one))).toEqual([])
  })
})
