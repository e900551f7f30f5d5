// A checkpoint as a block of the port. Balance changes come from the node beside the effects; with `verification: full` they are
// compared with the effects for tracked accounts (`node-claims.ts`).

import type { GrpcTypes } from '@mysten/sui/grpc'
import type { AssetKey } from '../../contract/records/assets.ts'
import { decodeBase58 } from '../../lib/base58.ts'
import type {
  BlockContent,
  BlockHeader,
  ChainBlock,
  Movement,
  Touch,
  Tracked,
  Undecoded,
} from '../chain.ts'
import { UnreadableError } from '../chain.ts'
import { parseCoinType } from './coin-type.ts'
import { suiFamily } from './family.ts'
import { type Change, recordsOf, type Settled, suiType } from './records.ts'

/** What nodes claim about a checkpoint and its digests do not bind (`node-claims.ts`). */
export type NodeClaims = {
  /** Every address whose balance may have changed, by the effects. */
  owners(): Iterable<string>
  /** Whether a claim about a tracked account is not verified yet. Does no input or output. */
  needsCheck(tracked: Tracked): boolean
  /** Throws BlockForgedError for a false claim, and UnreadableError where no node has the objects. */
  check(tracked: Tracked, signal: AbortSignal): Promise<void>
}

/** A node's answer that cannot be a checkpoint. */
export class MalformedCheckpointError extends Error {
  override name = 'MalformedCheckpointError'
}

const parseDigest = (text: string | undefined): Buffer | undefined => {
  // 32 bytes have at most 44 digits, and a longer text takes quadratic time.
  const bytes = text === undefined || text.length > 44 ? undefined : decodeBase58(text)
  return bytes?.length === 32 ? bytes : undefined
}

const readDigest = (text: string | undefined): Buffer => {
  const bytes = parseDigest(text)
  if (!bytes) throw new MalformedCheckpointError(`not a digest: ${text?.slice(0, 100)}`)
  return bytes
}

// The first checkpoint has no parent.
const noHash = Buffer.alloc(32)
// What a date can hold.
const latestTime = 8_640_000_000_000n

/** Reads the place of a checkpoint in the chain. */
export function toHeader({ sequenceNumber, digest, summary }: GrpcTypes.Checkpoint): BlockHeader {
  const { timestamp, previousDigest } = summary ?? {}
  if (sequenceNumber === undefined || !timestamp)
    throw new MalformedCheckpointError('a checkpoint without number or time')
  const { seconds } = timestamp
  if (sequenceNumber > Number.MAX_SAFE_INTEGER || seconds < 0n || seconds > latestTime)
    throw new MalformedCheckpointError('a checkpoint whose number or time is out of range')
  return {
    number: Number(sequenceNumber),
    hash: readDigest(digest),
    parent_hash: sequenceNumber === 0n ? noHash : readDigest(previousDigest),
    time: Number(timestamp.seconds) * 1_000 + Math.floor(timestamp.nanos / 1_000_000),
  }
}

const addressForm = /^0x[0-9a-f]{64}$/
const toAddress = (text: string): Buffer => Buffer.from(text.slice(2), 'hex')
const noParty = Buffer.alloc(0)

/** Assets by coin type; a block names few of them many times. */
const createAssets = () => {
  const known = new Map<string, AssetKey | undefined>([[suiType, suiFamily.native]])
  return (coinType: string): AssetKey | undefined => {
    if (!known.has(coinType)) {
      const parsed = parseCoinType(coinType)
      known.set(
        coinType,
        parsed.ok ? { ...suiFamily.native, contract_address: parsed.bytes } : undefined,
      )
    }
    return known.get(coinType)
  }
}

/** What gas came to; negative where more storage was given back than used. */
const gasOf = (used: GrpcTypes.GasCostSummary | undefined): bigint =>
  (used?.computationCost ?? 0n) + (used?.storageCost ?? 0n) - (used?.storageRebate ?? 0n)

/** Who pays the gas: the sender, or a sponsor. */
const payerOf = ({ transaction }: GrpcTypes.ExecutedTransaction): string =>
  transaction?.gasPayment?.owner ?? transaction?.sender ?? ''

// Behind all payments of a checkpoint. They keep their places, under which older versions have
// stored them: reading the checkpoint again must not store them twice.
const firstGasOrdinal = 2 ** 40

const isFailed = ({ effects }: GrpcTypes.ExecutedTransaction): boolean =>
  effects?.status?.success === false

/**
 * Makes a block of a checkpoint. Candidates are all addresses whose balance changed, those who pay
 * gas, and the senders of failed transactions, who get a record although a sponsor may have paid. With claims
 * also all owners that the effects name, so that a balance change that a node leaves out is found.
 */
export function toBlock(checkpoint: GrpcTypes.Checkpoint, claims?: NodeClaims): ChainBlock {
  const { transactions } = checkpoint
  // By their texts, for both functions: an address occurs in up to thousands of transactions of a checkpoint, and
  // reading it takes longer than looking it up. Null where the text is no address.
  const addresses = new Map<string, Buffer | null>()
  const readAddress = (text: string): Buffer | null => {
    let address = addresses.get(text)
    if (address === undefined) {
      address = addressForm.test(text) ? toAddress(text) : null
      addresses.set(text, address)
    }
    return address
  }

  const decode = ({ accounts }: Tracked): BlockContent => {
    const movements: Movement[] = []
    const ofGas: Movement[] = []
    const touches = new Map<string, Touch & { delta: bigint }>()
    const unknown_kinds: Record<string, number> = {}
    const undecoded: Undecoded[] = []
    const assetOf = createAssets()
    // The look-up hashes an address once.
    const verdicts = new Map<string, boolean>()
    const isTracked = (text: string): boolean => {
      let verdict = verdicts.get(text)
      if (verdict === undefined) {
        const address = readAddress(text)
        verdict = address !== null && accounts.has(address)
        verdicts.set(text, verdict)
      }
      return verdict
    }
    const touch = ({ address, coinType, amount }: Change): void => {
      const asset = assetOf(coinType)
      if (!asset || !isTracked(address)) return
      const key = `${address} ${coinType}`
      const known = touches.get(key)
      if (known) known.delta += amount
      else touches.set(key, { address: toAddress(address), asset, delta: amount })
    }
    const addMovements = (
      one: GrpcTypes.ExecutedTransaction,
      { first, index }: { first: number; index: number },
    ): void => {
      const { settled, ignored, unreadable } = settle(one, assetOf)
      for (const change of settled.changes) touch(change)
      if (ignored > 0) unknown_kinds.balance_change = (unknown_kinds.balance_change ?? 0) + ignored
      const transaction_hash = parseDigest(one.digest)
      if (!transaction_hash) unreadable.push('its digest')
      // What can be read of it is stored. The rest is missing, which makes the checkpoint a gap.
      if (unreadable.length > 0)
        undecoded.push({
          hash: transaction_hash ?? Buffer.alloc(0),
          reason: `transaction ${index}: cannot read ${unreadable.join(', ')}`,
        })
      if (!transaction_hash) return
      for (const [at, record] of recordsOf(settled).entries()) {
        const { coinType, from, to, value, pays_fee, gas } = record
        if (!isTracked(from) && !isTracked(to)) continue
        const movement: Movement = {
          ordinal: gas ? firstGasOrdinal + index : first + at,
          transaction_hash,
          asset: assetOf(coinType)!,
          from: from === '' ? noParty : toAddress(from),
          to: to === '' ? noParty : toAddress(to),
          value,
          transaction_fee: settled.gas > 0n ? settled.gas : 0n,
          ...(settled.success || gas === 'rebate' ? {} : { failed: true }),
          ...(pays_fee && { detail: { pays_fee } }),
        }
        if (gas) ofGas.push(movement)
        else movements.push(movement)
      }
    }
    let first = 0
    for (const [index, one] of transactions.entries()) {
      const { balanceChanges } = one
      // Decoding is the expensive part, so transactions of others are passed over.
      const concerns =
        balanceChanges.some(({ address }) => address !== undefined && isTracked(address)) ||
        isTracked(payerOf(one)) ||
        (isFailed(one) && isTracked(one.transaction?.sender ?? ''))
      if (concerns) addMovements(one, { first, index })
      // More than its payments can be: the gas payer may come in addition.
      first += balanceChanges.length + 2
    }
    movements.push(...ofGas)
    const touched = [...touches.values()].filter(({ delta }) => delta !== 0n)
    return { movements, touched, unknown_kinds, ...(undecoded.length > 0 && { undecoded }) }
  }

  return {
    ...toHeader(checkpoint),
    contracts: [],
    accounts: () => {
      const seen = new Map<string, Buffer>()
      const add = (text: string | undefined): void => {
        if (text === undefined || seen.has(text)) return
        const address = readAddress(text)
        if (address) seen.set(text, address)
      }
      for (const one of transactions) {
        for (const { address } of one.balanceChanges) add(address)
        // What the payer got may be just what the gas cost.
        add(payerOf(one))
        if (isFailed(one)) add(one.transaction?.sender)
      }
      for (const owner of claims?.owners() ?? []) add(owner)
      return seen.values()
    },
    decode,
    ...(claims && { needsCheck: claims.needsCheck, check: claims.check }),
  }
}

// An amount is an i128.
const amountForm = /^-?[0-9]{1,39}$/

/** Reads a transaction as far as it can be read, and says what cannot. */
function settle(
  one: GrpcTypes.ExecutedTransaction,
  assetOf: (coinType: string) => AssetKey | undefined,
): {
  settled: Settled
  /** Changes that were left out. */
  ignored: number
  /** What is missing because of it; a coin type that cannot be read cannot be tracked either. */
  unreadable: string[]
} {
  const { transaction, effects, balanceChanges } = one
  const unreadable: string[] = []
  const changes: Change[] = []
  for (const [index, { address = '', coinType = '', amount = '' }] of balanceChanges.entries()) {
    const isReadable = addressForm.test(address) && amountForm.test(amount)
    if (!isReadable) unreadable.push(`balance change ${index}`)
    else if (assetOf(coinType)) changes.push({ address, coinType, amount: BigInt(amount) })
  }
  const readParty = (text: string, name: string): string => {
    if (text === '' || addressForm.test(text)) return text
    unreadable.push(name)
    return ''
  }
  const settled = {
    sender: readParty(transaction?.sender ?? '', 'the sender'),
    payer: readParty(payerOf(one), 'the gas payer'),
    gas: gasOf(effects?.gasUsed),
    success: effects?.status?.success !== false,
    changes,
  }
  return { settled, ignored: balanceChanges.length - changes.length, unreadable }
}

// Some put a space between type arguments and some do not.
const tight = (coinType: string): string => coinType.replaceAll(' ', '')

/** The net change of addresses and coin types in a checkpoint, for those asked about. */
export function changesIn(
  { transactions }: GrpcTypes.Checkpoint,
  wanted: ReadonlySet<string>,
): Map<string, bigint> {
  const sums = new Map<string, bigint>()
  for (const { balanceChanges } of transactions)
    for (const { address, coinType, amount } of balanceChanges) {
      const key = `${address} ${tight(coinType ?? '')}`
      if (!wanted.has(key)) continue
      if (!amountForm.test(amount ?? '')) throw new UnreadableError('an amount is not a number')
      sums.set(key, (sums.get(key) ?? 0n) + BigInt(amount!))
    }
  return sums
}

/** How a pair is named among the wanted. */
export const pairKey = (address: Uint8Array, coinType: string): string =>
  `0x${Buffer.from(address).toString('hex')} ${tight(coinType)}`

/** The coin type of an asset as nodes write it. */
export const coinTypeOf = ({ contract_address }: AssetKey): string =>
  contract_address.length === 0 ? suiType : contract_address.toString('utf8')
