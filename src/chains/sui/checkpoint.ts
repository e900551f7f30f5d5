import type { GrpcTypes } from '@mysten/sui/grpc'
import type { AssetKey } from '../../contract/records/assets.ts'
import { decodeBase58 } from '../../lib/base58.ts'
import type { BlockContent, BlockHeader, ChainBlock, Movement, Touch, Tracked } from '../chain.ts'
import { parseCoinType } from './coin-type.ts'
import { suiFamily } from './family.ts'
import { type Change, recordsOf, type Settled, suiType } from './records.ts'

/** A node's answer that cannot be a checkpoint. */
export class MalformedCheckpointError extends Error {
  override name = 'MalformedCheckpointError'
}

const readDigest = (text: string | undefined): Buffer => {
  const bytes = text === undefined ? undefined : decodeBase58(text)
  if (bytes?.length !== 32) throw new MalformedCheckpointError(`not a digest: ${text}`)
  return bytes
}

const noHash = Buffer.alloc(32)

/** Reads the place of a checkpoint in the chain. */
export function toHeader({ sequenceNumber, digest, summary }: GrpcTypes.Checkpoint): BlockHeader {
  const { timestamp, previousDigest } = summary ?? {}
  if (sequenceNumber === undefined || !timestamp)
    throw new MalformedCheckpointError('a checkpoint without number or time')
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
 * gas, and the senders of failed transactions, who get a record although a sponsor may have paid.
 */
export function toBlock(checkpoint: GrpcTypes.Checkpoint): ChainBlock {
  const { transactions } = checkpoint

  const decode = ({ accounts }: Tracked): BlockContent => {
    const movements: Movement[] = []
    const ofGas: Movement[] = []
    const touches = new Map<string, Touch & { delta: bigint }>()
    const unknown_kinds: Record<string, number> = {}
    const assetOf = createAssets()
    const verdicts = new Map<string, boolean>()
    const isTracked = (address: string): boolean => {
      let verdict = verdicts.get(address)
      if (verdict === undefined) {
        verdict = addressForm.test(address) && accounts.has(toAddress(address))
        verdicts.set(address, verdict)
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
      const settled = settle(one, unknown_kinds, assetOf)
      for (const change of settled.changes) touch(change)
      const transaction_hash = readDigest(one.digest)
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
    return { movements, touched, unknown_kinds }
  }

  return {
    ...toHeader(checkpoint),
    contracts: [],
    accounts: () => {
      const seen = new Map<string, Buffer>()
      const add = (address: string | undefined): void => {
        if (address === undefined || seen.has(address) || !addressForm.test(address)) return
        seen.set(address, toAddress(address))
      }
      for (const one of transactions) {
        for (const { address } of one.balanceChanges) add(address)
        // What the payer got may be just what the gas cost.
        add(payerOf(one))
        if (isFailed(one)) add(one.transaction?.sender)
      }
      return seen.values()
    },
    decode,
  }
}

const amountForm = /^-?[0-9]+$/

/** Reads a transaction; what cannot be read is counted and left out. */
function settle(
  one: GrpcTypes.ExecutedTransaction,
  unknown_kinds: Record<string, number>,
  assetOf: (coinType: string) => AssetKey | undefined,
): Settled {
  const { transaction, effects, balanceChanges } = one
  const changes: Change[] = []
  for (const { address = '', coinType = '', amount = '' } of balanceChanges)
    if (addressForm.test(address) && amountForm.test(amount) && assetOf(coinType))
      changes.push({ address, coinType, amount: BigInt(amount) })
    else unknown_kinds.balance_change = (unknown_kinds.balance_change ?? 0) + 1
  const sender = transaction?.sender ?? ''
  return {
    sender,
    payer: payerOf(one),
    gas: gasOf(effects?.gasUsed),
    success: effects?.status?.success !== false,
    changes,
  }
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
      if (wanted.has(key)) sums.set(key, (sums.get(key) ?? 0n) + BigInt(amount ?? '0'))
    }
  return sums
}

/** How a pair is named among the wanted. */
export const pairKey = (address: Uint8Array, coinType: string): string =>
  `0x${Buffer.from(address).toString('hex')} ${tight(coinType)}`

/** The coin type of an asset as nodes write it. */
export const coinTypeOf = ({ contract_address }: AssetKey): string =>
  contract_address.length === 0 ? suiType : contract_address.toString('utf8')
