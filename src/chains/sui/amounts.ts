// Derives the balance changes of a transaction from its effects (`verification: full`). Effects of version 2 are
// certified and name every object that changed, with its owner and the digest of its bytes before and after. Coins
// are read from bytes with these digests, and address balances from the effects themselves.

import { bcs } from '@mysten/sui/bcs'
import { UnreadableError } from '../chain.ts'
import { parseCoinType } from './coin-type.ts'
import { type Change, suiType } from './records.ts'
import { digestOf } from './summary.ts'

/** One version of an object, as effects name it. */
export type ObjectVersion = { id: string; version: bigint; digest: string }

/** A version that may be a coin of its owner. */
export type Owned = ObjectVersion & {
  owner: string
  /** The owner is an object. Older nodes count such coins as balance changes of its id. */
  isOfObject?: true
}

/** What effects say about owners and coins. */
export type Effects = {
  /** Before the transaction, and after it. */
  before: readonly Owned[]
  after: readonly Owned[]
  /** Changes of address balances. */
  funds: readonly Change[]
}

type ParsedOwner = ReturnType<typeof bcs.Owner.parse>

/** To whom a coin counts; undefined where it is shared or immutable. */
const ownerOf = (owner: ParsedOwner): Pick<Owned, 'owner' | 'isOfObject'> | undefined => {
  const address = owner.AddressOwner ?? owner.ConsensusAddressOwner?.owner
  if (address) return { owner: address }
  return owner.ObjectOwner ? { owner: owner.ObjectOwner, isOfObject: true } : undefined
}

const balanceForm = /^0x0*2::balance::Balance<(.+)>$/

/** Effects as the SDK reads them. */
export type ParsedEffects = ReturnType<typeof bcs.TransactionEffects.parse>

/** Undefined for a form that the SDK cannot read. */
export function parseEffects(bytes: Uint8Array): ParsedEffects | undefined {
  try {
    return bcs.TransactionEffects.parse(bytes)
  } catch {
    return undefined
  }
}

/**
 * What effects say of objects. Undefined for version 1, which has no digests of the objects before a
 * transaction: no amounts can be derived from it.
 */
export function readEffects({ V2 }: ParsedEffects): Effects | undefined {
  if (!V2) return undefined
  const before: Owned[] = []
  const after: Owned[] = []
  const funds: Change[] = []
  for (const [id, { inputState, outputState }] of V2.changedObjects) {
    // A version is read before and after the transaction; an object that was created has no first,
    // one that was deleted no second.
    if (inputState.Exist) {
      const [[version, digest], holder] = inputState.Exist
      const owner = ownerOf(holder)
      if (owner) before.push({ id, version: BigInt(version), digest, ...owner })
    }
    if (outputState.ObjectWrite) {
      const [digest, holder] = outputState.ObjectWrite
      const owner = ownerOf(holder)
      if (owner) after.push({ id, version: BigInt(V2.lamportVersion), digest, ...owner })
    }
    const write = outputState.AccumulatorWriteV1
    if (!write || write.value.Integer === undefined) continue
    const coinType = balanceForm.exec(write.address.ty)?.[1]
    if (coinType === undefined) continue
    const amount = BigInt(write.value.Integer)
    const { address } = write.address
    funds.push({ address, coinType, amount: write.operation.Split ? -amount : amount })
  }
  return { before, after, funds }
}

/** All addresses whose balance a transaction may have changed. */
export function* ownersOf({ before, after, funds }: Effects): Generator<string> {
  for (const { owner, isOfObject } of before) if (!isOfObject) yield owner
  for (const { owner, isOfObject } of after) if (!isOfObject) yield owner
  for (const { address } of funds) yield address
}

/** The effects without coins of objects, unless the claims of a node count those. */
export function countedIn(
  { before, after, funds }: Effects,
  claimed: ReadonlySet<string>,
): Effects {
  // Once one such coin is claimed, the node counts all of them.
  const isClaimed = ({ isOfObject, owner }: Owned) => isOfObject === true && claimed.has(owner)
  if ([...before, ...after].some(isClaimed)) return { before, after, funds }
  const isCounted = ({ isOfObject }: Owned) => !isOfObject
  return { before: before.filter(isCounted), after: after.filter(isCounted), funds }
}

/** An object has a form that the SDK cannot read. Its bytes have the digest that the validators signed, so no node is to blame. */
export class UnknownObjectError extends Error {
  override name = 'UnknownObjectError'
}

const parseObject = (bytes: Uint8Array): ReturnType<typeof bcs.Object.parse> => {
  try {
    return bcs.Object.parse(bytes)
  } catch (cause) {
    throw new UnknownObjectError('an object has an unknown form', { cause })
  }
}

/** The coin in the bytes of an object; undefined where it is none. */
function coinIn(bytes: Uint8Array): { coinType: string; balance: bigint } | undefined {
  const { Move } = parseObject(bytes).data
  if (!Move) return undefined
  const { type, contents } = Move
  const isSui = type.GasCoin !== undefined
  if (!isSui && type.Coin === undefined) return undefined
  // The id and the balance.
  const value = Buffer.from(contents)
  if (value.length !== 40) throw new UnknownObjectError('a coin does not have 40 bytes')
  return {
    coinType: isSui ? suiType : type.Coin!,
    balance: value.readBigUInt64LE(32),
  }
}

/** One spelling for each coin type. */
export const coinKey = (address: string, coinType: string): string => {
  const parsed = parseCoinType(coinType)
  return `${address} ${parsed.ok ? parsed.bytes.toString() : coinType}`
}

/**
 * The net changes of a transaction by address and coin type, without those that are zero. `bytesOf` gives the bytes of
 * an object by its digest; they must have that digest. Throws UnknownObjectError.
 */
export function changesOf(
  { before, after, funds }: Effects,
  bytesOf: (digest: string) => Uint8Array | undefined,
): Map<string, bigint> {
  const sums = new Map<string, bigint>()
  const add = (address: string, coinType: string, amount: bigint): void => {
    const key = coinKey(address, coinType)
    sums.set(key, (sums.get(key) ?? 0n) + amount)
  }
  const addAll = (objects: readonly Owned[], sign: bigint): void => {
    for (const { digest, owner, id } of objects) {
      const bytes = bytesOf(digest)
      if (!bytes) throw new UnreadableError(`object ${id} is missing`)
      const coin = coinIn(bytes)
      if (coin) add(owner, coin.coinType, sign * coin.balance)
    }
  }
  addAll(before, -1n)
  addAll(after, 1n)
  for (const { address, coinType, amount } of funds) add(address, coinType, amount)
  for (const [key, amount] of sums) if (amount === 0n) sums.delete(key)
  return sums
}

/** Whether bytes are those of an object with this digest. */
export const isObject = (bytes: Uint8Array, digest: string): boolean =>
  digestOf('Object', bytes) === digest
