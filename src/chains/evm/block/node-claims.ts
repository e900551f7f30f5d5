// What no root commits to: senders (unless recovered) and traces. Checking costs requests and CPU, so it happens only for
// accounts that are tracked, after the look-up and outside of the database transaction (`workers/tracker/checked.ts`).

import { setImmediate as turn } from 'node:timers/promises'
import type { Pieces } from '../../../lib/bytes.ts'
import { BlockForgedError, type BlockRef, type Tracked } from '../../chain.ts'
import { toHex } from '../../hex.ts'
import { loadRecoverSigner } from '../codec/signer.ts'
import { internalPlace, type NativeEffects, noParty } from './native.ts'

/** How claims are checked. */
export type NodeClaimTools = {
  /** Whether the senders of transactions are recovered from their signatures. */
  verifySenders: boolean
  /** Called with a transaction whose sender is false: the next node that is asked must prove it. */
  onForged(number: number, transaction: number): void
  confirm: Confirm
}

/**
 * Says for accounts of one block whether the state or a second trace shows that their coin changed by these amounts. Ends in
 * bounded time, because it delays the block.
 */
export type Confirm = (
  questions: readonly ConfirmQuestion[],
  signal: AbortSignal,
) => Promise<boolean[]>

/** A change of an account that is known from a trace. */
export type ConfirmQuestion = {
  account: Buffer
  /** By how much its coin changed in the block, as far as it is known. */
  change: bigint | undefined
  /** What it sent and received inside of calls, according to traces. */
  moves: readonly InternalMove[]
  /** What it paid for its own transactions: no root commits to prices of gas. */
  paid: readonly PaidFee[]
  block: BlockRef
  parent_hash: Buffer
  /** The nodes that traced these moves. */
  tracers: readonly string[]
  /** The hashes of the block's transactions. */
  hashes(): readonly string[]
  /** How many of the last ones nodes may leave out of traces. */
  untraced: number
}

/** A transfer inside of a call, in the transaction of this index. */
export type InternalMove = { transaction: number; from: Buffer; to: Buffer; value: bigint }

/** What the transaction of this index cost its sender. */
export type PaidFee = { transaction: number; fee: bigint }

const noAddress = Buffer.alloc(0)

/** What nodes say of a block and no root commits to, as far as it concerns tracked accounts. */
export type NodeClaims = {
  /** Whether something is not checked yet. Does no input or output. */
  needsCheck(tracked: Tracked): boolean
  check(tracked: Tracked, signal: AbortSignal): Promise<void>
  /** Whether what traces say of an account was confirmed. */
  isConfirmed(address: number): boolean
}

type Block = BlockRef & {
  parent_hash: Buffer
  addresses: Pieces
  effects: readonly NativeEffects[]
  rewarded: readonly number[]
  /** By transaction. */
  tracers: readonly string[]
  /** How many state syncs it ends with. */
  untraced: number
  hashOf(index: number): Buffer
  /** The proved encoding of a transaction; undefined where nothing proves it. */
  encodedOf(index: number): Uint8Array | undefined
}

/** Keeps what was checked of a block. */
export function createNodeClaims(block: Block, tools: NodeClaimTools | undefined): NodeClaims {
  const { addresses, effects } = block
  const senders = new Set<number>()
  /** By the place of the account among the distinct addresses. */
  const decided = new Map<number, boolean>()
  const placeOf = (number: number): number => addresses.at[number]!

  const open = (tracked: Tracked): { transactions: number[]; accounts: number[] } => {
    const transactions: number[] = []
    const accounts = new Set<number>()
    const isTracked = (number: number): boolean =>
      number !== noParty && tracked.accounts.has(addresses.distinct[placeOf(number)]!)
    for (let index = 0; index < effects.length; index++) {
      const { sender, movements } = effects[index]!
      let concerns = isTracked(sender)
      for (const { place, from, to } of movements) {
        const [isSent, isReceived] = [isTracked(from), isTracked(to)]
        if (place < internalPlace) concerns ||= isSent || isReceived
        else {
          if (isSent && !decided.has(placeOf(from))) accounts.add(placeOf(from))
          if (isReceived && !decided.has(placeOf(to))) accounts.add(placeOf(to))
        }
      }
      if (concerns && tools?.verifySenders && !senders.has(index)) transactions.push(index)
    }
    return { transactions, accounts: [...accounts] }
  }

  /** What the coin of an account did, according to transactions and traces. */
  const changesOf = (
    account: number,
  ): Pick<ConfirmQuestion, 'change' | 'moves' | 'paid' | 'tracers'> => {
    let change = 0n
    const moves: InternalMove[] = []
    const paid: PaidFee[] = []
    const tracers = new Set<string>()
    const addressOf = (number: number): Buffer =>
      number === noParty ? noAddress : addresses.distinct[placeOf(number)]!
    for (const [transaction, { sender, fee, movements }] of effects.entries()) {
      // Also one without a fee: a node may have said that the price was zero.
      if (placeOf(sender) === account) {
        change -= fee
        paid.push({ transaction, fee })
      }
      for (const { place, from, to, value, failed } of movements) {
        if (failed) continue
        const isSent = from !== noParty && placeOf(from) === account
        const isReceived = to !== noParty && placeOf(to) === account
        if (isSent) change -= value
        if (isReceived) change += value
        if (place < internalPlace || !(isSent || isReceived)) continue
        moves.push({ transaction, from: addressOf(from), to: addressOf(to), value })
        const tracer = block.tracers[transaction]
        if (tracer) tracers.add(tracer)
      }
    }
    // Tips and withdrawals are not movements of transactions.
    const isRewarded = block.rewarded.some((number) => placeOf(number) === account)
    return { change: isRewarded ? undefined : change, moves, paid, tracers: [...tracers] }
  }

  let names: readonly string[] | undefined
  // A block may have many accounts that ask.
  const hashes = () => {
    names ??= effects.map((_, index) => toHex(block.hashOf(index)))
    return names
  }
  const questionOf = (account: number): ConfirmQuestion => {
    const { number, hash, parent_hash } = block
    return {
      account: addresses.distinct[account]!,
      ...changesOf(account),
      block: { number, hash },
      parent_hash,
      hashes,
      untraced: block.untraced,
    }
  }

  return {
    needsCheck: (tracked) => {
      if (!tools) return false
      const { transactions, accounts } = open(tracked)
      return transactions.length + accounts.length > 0
    },
    check: async (tracked, signal) => {
      if (!tools) return
      const { transactions, accounts } = open(tracked)
      if (transactions.length > 0) {
        const recover = await loadRecoverSigner()
        for (const index of transactions) {
          signal.throwIfAborted()
          const encoded = block.encodedOf(index)
          const signer = encoded && recover(encoded)
          const sender = addresses.distinct[placeOf(effects[index]!.sender)]!
          if (signer !== undefined && signer !== `0x${sender.toString('hex')}`) {
            tools.onForged(block.number, index)
            throw new BlockForgedError(
              `transaction ${index} of block ${block.number} was not signed by the sender that a node gave`,
            )
          }
          senders.add(index)
          // Recovering takes about two milliseconds: other work continues in between.
          await turn()
        }
      }
      if (accounts.length === 0) return
      const confirmed = await tools.confirm(accounts.map(questionOf), signal)
      for (const [index, account] of accounts.entries()) decided.set(account, confirmed[index]!)
    },
    isConfirmed: (number) => !tools || decided.get(placeOf(number)) === true,
  }
}
