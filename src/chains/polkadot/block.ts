import { Blake2256 } from '@polkadot-api/substrate-bindings'
import { distinctBytes } from '../../lib/bytes.ts'
import type { AssetKey, BlockContent, BlockHeader, ChainBlock, Movement } from '../chain.ts'
import type { BalanceEvent } from './events.ts'
import { ScaleError } from './scale.ts'

/** What a block is made of. */
export type BlockParts = BlockHeader & {
  native: AssetKey
  /** In hex, as the nodes give them. */
  extrinsics: readonly string[]
  events: readonly BalanceEvent[]
}

const isTransfer = ({ pallet, name }: BalanceEvent) => pallet === 'Balances' && name === 'Transfer'

/** A block from its events: what moved is what they say, however the calls came about. */
export function createBlock({ native, extrinsics, events, ...header }: BlockParts): ChainBlock {
  // Then the node took the two from different blocks, or left something out.
  if (events.some(({ extrinsic = -1 }) => extrinsic >= extrinsics.length))
    throw new ScaleError('an event is of an extrinsic that the block has not')
  const balances = events.filter(({ pallet }) => pallet === 'Balances')
  const accounts = distinctBytes(
    balances.flatMap(({ fields }) => fields.flatMap(({ account }) => account ?? [])),
  )
  const hashes = new Map<number, Buffer>()
  const hashOf = (extrinsic: number | undefined): Buffer => {
    // What the chain does by itself (payouts, messages of other chains) has no extrinsic.
    if (extrinsic === undefined) return header.hash
    let hash = hashes.get(extrinsic)
    if (!hash) {
      hash = Buffer.from(Blake2256(bytesOf(extrinsics[extrinsic]!)))
      hashes.set(extrinsic, hash)
    }
    return hash
  }
  const fees = new Map<number, bigint>()
  const costOf = (extrinsic: number | undefined): bigint => {
    if (extrinsic === undefined) return 0n
    let fee = fees.get(extrinsic)
    if (fee === undefined) {
      fee = feeOf(events, extrinsic)
      fees.set(extrinsic, fee)
    }
    return fee
  }

  const decode: ChainBlock['decode'] = (tracked): BlockContent => {
    const movements: Movement[] = []
    for (const event of balances) {
      if (!isTransfer(event)) continue
      const [from, to] = event.fields.flatMap(({ account }) => account ?? [])
      const value = event.fields.find(({ number }) => number !== undefined)?.number
      if (!from || !to || value === undefined) throw new Error('a transfer without its fields')
      if (!tracked.accounts.has(from) && !tracked.accounts.has(to)) continue
      const { extrinsic, index } = event
      movements.push({
        ordinal: index,
        transaction_hash: hashOf(extrinsic),
        asset: native,
        from: Buffer.from(from),
        to: Buffer.from(to),
        value,
        transaction_fee: costOf(extrinsic),
      })
    }
    const touched = accounts
      .filter((account) => tracked.accounts.has(account))
      .map((account) => ({ address: Buffer.from(account), asset: native }))
    return { movements, touched }
  }
  return { ...header, contracts: [], accounts: () => accounts, decode }
}

const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.slice(2), 'hex'))

/**
 * What an extrinsic cost in the native coin. Runtimes since 2022 say it; those before withdraw the fee
 * as the first thing, and give back at the end what the call did not use.
 */
export function feeOf(events: readonly BalanceEvent[], extrinsic: number): bigint {
  const own = events.filter((event) => event.extrinsic === extrinsic)
  const numberIn = ({ fields }: BalanceEvent, name: string) =>
    fields.find((field) => field.name === name)?.number ??
    fields.find(({ number }) => number !== undefined)?.number ??
    0n
  const said = own.find(({ name }) => name === 'TransactionFeePaid')
  if (said) return numberIn(said, 'actual_fee')
  // Paid in another asset.
  if (own.some(({ name }) => name === 'AssetTxFeePaid')) return 0n
  return withdrawnIn(own, (event) => numberIn(event, 'amount'))
}

function withdrawnIn(
  events: readonly BalanceEvent[],
  amountOf: (event: BalanceEvent) => bigint,
): bigint {
  const accountOf = ({ fields }: BalanceEvent) => fields.find(({ account }) => account)?.account
  const first = events.find(({ name }) => name === 'Withdraw')
  const payer = first && accountOf(first)
  if (!first || !payer) return 0n
  const paid = amountOf(first)
  // From the end: what others got of the fee, and before it what came back. Together it is all of it.
  let shared = 0n
  for (const event of events.toReversed()) {
    if (event.name !== 'Deposit') continue
    const amount = amountOf(event)
    if (accountOf(event)?.equals(payer) && shared + amount === paid) return shared
    shared += amount
  }
  return paid
}
