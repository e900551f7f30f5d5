import { Blake2256 } from '@polkadot-api/substrate-bindings'
import type { AssetKey } from '../../contract/records/assets.ts'
import { distinctBytes } from '../../lib/bytes.ts'
import type { BlockContent, BlockHeader, ChainBlock, Movement } from '../chain.ts'
import type { BalanceEvent } from './events.ts'
import { ScaleError, skipCompact } from './scale.ts'

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
    events
      .filter(({ pallet }) => pallet === 'Balances' || pallet === 'TransactionPayment')
      .flatMap(({ fields }) => fields.flatMap(({ account }) => account ?? [])),
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
  const decode: ChainBlock['decode'] = (tracked): BlockContent => {
    const concerned = accounts.filter((account) => tracked.accounts.has(account))
    if (concerned.length === 0) return { movements: [], touched: [] }
    const bills = new Map<number, Bill>()
    for (const [extrinsic, own] of Map.groupBy(events, (event) => event.extrinsic))
      if (extrinsic !== undefined)
        bills.set(extrinsic, billOf(own, { isSigned: isSigned(extrinsics[extrinsic]!) }))
    // The fee counts with the first transfer of its payer.
    const unpaid = new Map([...bills].filter(([, { fee }]) => fee > 0n))
    const movements: Movement[] = []
    const add = (
      { index, extrinsic }: Pick<BalanceEvent, 'index' | 'extrinsic'>,
      moved: Pick<Movement, 'from' | 'to' | 'value'>,
    ): void => {
      const bill = extrinsic === undefined ? undefined : unpaid.get(extrinsic)
      const pays_fee = bill?.payer?.equals(moved.from) === true
      if (pays_fee) unpaid.delete(extrinsic!)
      if (!tracked.accounts.has(moved.from) && !tracked.accounts.has(moved.to)) return
      movements.push({
        ordinal: index,
        transaction_hash: hashOf(extrinsic),
        asset: native,
        ...moved,
        transaction_fee: (extrinsic !== undefined && bills.get(extrinsic)?.fee) || 0n,
        ...(pays_fee && { detail: { pays_fee } }),
      })
    }
    for (const event of balances) {
      if (!isTransfer(event)) continue
      const [from, to] = event.fields.flatMap(({ account }) => account ?? [])
      const value = event.fields.find(({ number }) => number !== undefined)?.number
      if (!from || !to || value === undefined) throw new Error('a transfer without its fields')
      add(event, { from: Buffer.from(from), to: Buffer.from(to), value })
    }
    // An extrinsic that moves nothing costs its fee all the same: a failed call, a vote, a contract call.
    for (const [extrinsic, { payer, index }] of [...unpaid])
      if (payer) add({ index, extrinsic }, { from: Buffer.from(payer), to: noParty, value: 0n })
    movements.sort((one, other) => one.ordinal - other.ordinal)
    const touched = concerned.map((account) => ({ address: Buffer.from(account), asset: native }))
    return { movements, touched }
  }
  return { ...header, contracts: [], accounts: () => accounts, decode }
}

const noParty = Buffer.alloc(0)

/** Whether an extrinsic has a signature: the first bit after its length. */
const isSigned = (extrinsic: string): boolean => {
  const bytes = bytesOf(extrinsic.slice(0, 32))
  return (bytes[skipCompact(bytes, 0)]! & 0x80) !== 0
}

const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.slice(2), 'hex'))

/** What an extrinsic cost in the native coin, who paid it, and the number of the event that says so. */
export type Bill = { fee: bigint; payer?: Buffer | undefined; index: number }

const free: Bill = { fee: 0n, index: 0 }

/**
 * The bill of an extrinsic by its events. Runtimes since 2022 say it; those before withdraw the fee
 * as the first thing, and give back at the end what the call did not use.
 */
export function billOf(
  own: readonly BalanceEvent[],
  { isSigned = true }: { isSigned?: boolean } = {},
): Bill {
  const said = own.find(({ name }) => name === 'TransactionFeePaid')
  if (said) return { fee: numberIn(said, 'actual_fee'), payer: accountIn(said), index: said.index }
  // Paid in another asset, or by no account: what an inherent withdraws is no fee.
  if (!isSigned) return free
  if (own.some(({ name }) => name === 'AssetTxFeePaid')) return free
  const first = own.find(({ pallet, name }) => pallet === 'Balances' && name === 'Withdraw')
  const payer = first && accountIn(first)
  if (!first || !payer) return free
  return { fee: withdrawnIn(own, { first, payer }), payer, index: first.index }
}

const numberIn = ({ fields }: BalanceEvent, name: string): bigint =>
  fields.find((field) => field.name === name)?.number ??
  fields.find(({ number }) => number !== undefined)?.number ??
  0n

const accountIn = ({ fields }: BalanceEvent): Buffer | undefined =>
  fields.find(({ account }) => account)?.account

function withdrawnIn(
  events: readonly BalanceEvent[],
  { first, payer }: { first: BalanceEvent; payer: Buffer },
): bigint {
  const paid = numberIn(first, 'amount')
  // From the end: what others got of the fee, and before it what came back. Together it is all of it.
  let shared = 0n
  for (const event of events.toReversed()) {
    if (event.name !== 'Deposit') continue
    const amount = numberIn(event, 'amount')
    if (accountIn(event)?.equals(payer) && shared + amount === paid) return shared
    shared += amount
  }
  return paid
}
