import { getDynamicBuilder, getLookupFn } from '@polkadot-api/metadata-builders'
import {
  AccountId,
  Blake2256,
  decAnyMetadata,
  unifyMetadata,
} from '@polkadot-api/substrate-bindings'
import { describe, expect, it } from 'vitest'
import { createCodes } from '../../../devnet/polkadot/code.ts'
import { genesisOf, loadChainSpec } from '../../../devnet/polkadot/spec.ts'
import { createOverlay, createTrieState } from '../../../devnet/polkadot/state.ts'
import { createBlock } from '../../../src/chains/polkadot/block.ts'
import { createCodecs } from '../../../src/chains/polkadot/codecs.ts'
import { createPolkadotFamily } from '../../../src/chains/polkadot/family.ts'
import { createByteSet } from '../../../src/lib/bytes.ts'

// The metadata of real runtimes, as the library's own tests have them. Loaded by a name that is made
// here: the package comes with @polkadot/api and is no dependency of its own.
const typesPackage = '@polkadot/types-support'
const published = async (name: string): Promise<Uint8Array> => {
  const { default: hex } = await import(`${typesPackage}/metadata/${name}-hex`)
  const bytes = Buffer.from(String(hex).slice(2), 'hex')
  // Some are what a runtime call gave, with a length before them.
  return Uint8Array.from(bytes.subarray(bytes.indexOf('meta')))
}

const spec = await loadChainSpec()
const state = createTrieState(undefined).with(genesisOf(spec, []))
const code = createCodes()(state)
/** The runtime of the dev node, of 2022. */
const old = Uint8Array.from(code.metadata)

const [alice, bob] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
const text = (account: Buffer) => AccountId().dec(Uint8Array.from(account))
const word = (value: bigint, size: number): Buffer =>
  Buffer.from(Array.from({ length: size }, (_, at) => Number((value >> (8n * BigInt(at))) & 0xffn)))
const hex = (...parts: Buffer[]) => `0x${Buffer.concat(parts).toString('hex')}`

/** nonce, consumers, providers, sufficients. */
const counts = Buffer.concat([3n, 1n, 1n, 0n].map((value) => word(value, 4)))

describe('System.Account', () => {
  const [free, reserved] = [7n * 10n ** 20n + 1n, 2n ** 100n + 5n]

  it('of a runtime of 2022 ends with two kinds of frozen coin', () => {
    const bytes = hex(counts, ...[free, reserved, 11n, 13n].map((value) => word(value, 16)))
    expect(bytes).toHaveLength(2 + 2 * 80)
    expect(createCodecs(old).readBalance(bytes)).toBe(free + reserved)
  })

  it.each(['v14/polkadot', 'v15/asset-hub-polkadot', 'v15/asset-hub-kusama', 'v16/substrate'])(
    'of the runtime of %s ends with frozen coin and flags',
    async (name) => {
      // The highest bit of the flags says that the account has the new form.
      const flags = 1n << 127n
      const bytes = hex(counts, ...[free, reserved, 11n, flags].map((value) => word(value, 16)))
      expect(bytes).toHaveLength(2 + 2 * 80)
      expect(createCodecs(await published(name)).readBalance(bytes)).toBe(free + reserved)
    },
  )
})

describe('metadata', () => {
  it('is asked for in the form that every runtime has: this one offers no other', () => {
    expect(decAnyMetadata(old).metadata.tag).toBe('v14')
    expect(() =>
      code.call('Metadata_metadata_at_version', Uint8Array.of(15, 0, 0, 0), createOverlay(state)),
    ).toThrow(/has no Metadata_metadata_at_version/)
  })

  it.each([
    ['v14/polkadot', 'v14', 0],
    ['v14/kusama', 'v14', 2],
    ['v15/polkadot', 'v15', 0],
    ['v15/asset-hub-polkadot', 'v15', 0],
    ['v15/asset-hub-kusama', 'v15', 2],
    ['v16/substrate', 'v16', 42],
  ] as const)(
    'of %s is read in its version, and its fee event is the fee',
    async (name, tag, prefix) => {
      const bytes = await published(name)
      const decoded = decAnyMetadata(bytes)
      expect(decoded.metadata.tag).toBe(tag)
      // Whatever lies around it in memory.
      const within = Buffer.concat([Buffer.alloc(7, 0xff), bytes, Buffer.alloc(9, 0xff)])
      const codecs = createCodecs(within.subarray(7, 7 + bytes.length))
      expect(codecs.ss58_prefix).toBe(prefix)

      const builder = getDynamicBuilder(getLookupFn(unifyMetadata(decoded)))
      const record = (
        extrinsic: number | undefined,
        pallet: string,
        event: string,
        value: object,
      ) => ({
        phase:
          extrinsic === undefined
            ? { type: 'Initialization', value: undefined }
            : { type: 'ApplyExtrinsic', value: extrinsic },
        event: { type: pallet, value: { type: event, value } },
        topics: [],
      })
      const transfer = { from: text(alice), to: text(bob), amount: 5_000n }
      const who = text(alice)
      const events = builder.buildStorage('System', 'Events').value.enc([
        record(undefined, 'Balances', 'Transfer', { ...transfer, amount: 1n }),
        record(1, 'Balances', 'Withdraw', { who, amount: 900n }),
        record(1, 'Balances', 'Transfer', transfer),
        record(1, 'System', 'NewAccount', { account: text(bob) }),
        record(1, 'Balances', 'Endowed', { account: text(bob), free_balance: 5_000n }),
        record(1, 'Balances', 'Deposit', { who, amount: 200n }),
        record(1, 'TransactionPayment', 'TransactionFeePaid', {
          who,
          actual_fee: 650n,
          tip: 50n,
        }),
      ])
      const extrinsics = ['0x00', '0x1234']
      const block = createBlock({
        ...{ number: 5, hash: Buffer.alloc(32, 9), parent_hash: Buffer.alloc(32, 8), time: 12_000 },
        ...{ native: createPolkadotFamily().native, extrinsics },
        events: codecs.readEvents(Buffer.from(events)),
      })
      const { movements, touched } = block.decode({
        accounts: createByteSet([bob]),
        contracts: createByteSet([]),
        tokenAccount: () => [],
      })
      expect(movements).toMatchObject([
        { ordinal: 0, value: 1n, transaction_fee: 0n, transaction_hash: Buffer.alloc(32, 9) },
        {
          ...{ ordinal: 2, from: alice, to: bob, value: 5_000n, transaction_fee: 650n },
          transaction_hash: Buffer.from(Blake2256(Uint8Array.of(0x12, 0x34))),
        },
      ])
      expect(touched).toMatchObject([{ address: bob }])
    },
  )
})
