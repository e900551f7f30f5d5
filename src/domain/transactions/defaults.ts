// What a request leaves open is asked of the nodes before the database transaction, all at once: no node is called while a
// lock is held.

import type { BlockLimits, EstimatedCall } from '../../chains/sending.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import type { WalletRequest } from '../../contract/operations/calls.ts'
import type { Context } from '../context.ts'
import { insufficientFunds } from './checks.ts'
import type { SendingScope } from './scope.ts'

/** What both requests that create a transaction have. */
export type CreateRequest = Pick<
  WalletRequest<'CreateTransaction'>,
  'wallet_id' | 'from' | 'gas' | 'gas_price' | 'nonce' | 'transaction_id'
>

/** The transaction to be sent, read from the request. */
export type Prepared = EstimatedCall & {
  /** A reason to expect a failure that an estimate does not show, with its field. */
  explain?(signal: AbortSignal): Promise<{ field: string; detail: string } | undefined>
}

/** What the nodes say of a transaction that is to be created. */
export type Defaults = {
  gas: bigint
  /** As asked for; undefined leaves it to the nodes' price. */
  asked_price: bigint | undefined
  node_price: bigint
  eip155_chain_id: bigint
  /** As asked for; undefined leaves it to the count. */
  asked_nonce: number | undefined
  /** The count of the address: with those in the pools, or of the chain alone for an asked nonce. */
  count: number
  /** The count with those in the pools, where `count` is not it. */
  next_nonce: number | undefined
  balance: bigint
  limits: BlockLimits
}

/** Asks the nodes for all that the request leaves open, at once. */
export async function readDefaults(
  { signal }: Context,
  { sending }: SendingScope,
  { request, prepared }: { request: CreateRequest; prepared: Prepared },
): Promise<Defaults> {
  const { gas, gas_price, nonce } = request
  const { from } = prepared
  const reading = sending.balance(from, signal)
  const [estimated, node_price, eip155_chain_id, count, next_nonce, limits, balance] =
    await Promise.all([
      gas === undefined ? estimate() : BigInt(gas),
      sending.gasPrice(signal),
      sending.chainId(signal),
      // An asked nonce may replace a pending transaction: only nonces of blocks are used up.
      sending.transactionCount(from, nonce === undefined ? 'pending' : 'latest', signal),
      nonce === undefined ? undefined : sending.transactionCount(from, 'pending', signal),
      sending.blockLimits(signal),
      reading,
    ])
  return {
    gas: estimated,
    asked_price: gas_price === undefined ? undefined : BigInt(gas_price),
    node_price,
    eip155_chain_id,
    asked_nonce: nonce,
    count,
    next_nonce,
    balance,
    limits,
  }

  async function estimate(): Promise<bigint> {
    const [estimated, warning] = await Promise.all([
      sending.estimate(prepared, signal),
      prepared.explain?.(signal),
    ])
    // A token that answers "false" instead of failing, or no token at all, costs gas for nothing.
    if (estimated.ok && !warning) return estimated.gas
    // Nodes estimate nothing that the address cannot pay for.
    const balance = await reading
    if (!estimated.ok && balance < prepared.value)
      throw insufficientFunds({ balance, cost: prepared.value })
    const reasons = [estimated.ok ? '' : estimated.detail, warning?.detail ?? '']
    throw new OperationError('TRANSACTION_WOULD_FAIL', {
      detail: reasons.filter(Boolean).join(' '),
      errors: warning ? [{ ...warning, reason: 'WOULD_FAIL' }] : [],
    })
  }
}
