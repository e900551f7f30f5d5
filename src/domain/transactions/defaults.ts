import { OperationError } from '../../contract/errors.ts'
import type { Context } from '../context.ts'
import type { Common, Prepared } from './create.ts'
import type { SendingScope } from './scope.ts'

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
  /** When the count was asked for. */
  counted: number
}

/** Asks the nodes for all that the request leaves open, at once. */
export async function readDefaults(
  { clock, signal }: Context,
  { sending }: SendingScope,
  { request, prepared }: { request: Common; prepared: Prepared },
): Promise<Defaults> {
  const { gas, gas_price, nonce } = request
  const counted = clock.now()
  const [estimated, node_price, eip155_chain_id, count] = await Promise.all([
    gas === undefined ? estimate() : BigInt(gas),
    gas_price === undefined ? sending.gasPrice(signal) : 0n,
    sending.chainId(signal),
    sending.transactionCount(prepared.from, nonce === undefined ? 'pending' : 'latest', signal),
  ])
  return {
    gas: estimated,
    asked_price: gas_price === undefined ? undefined : BigInt(gas_price),
    node_price,
    eip155_chain_id,
    asked_nonce: nonce,
    count,
    counted,
  }

  async function estimate(): Promise<bigint> {
    const [estimated, warning] = await Promise.all([
      sending.estimate(prepared, signal),
      prepared.explain?.(signal),
    ])
    // A token that answers "false" instead of failing, or no token at all, costs gas for nothing.
    if (estimated.ok && !warning) return estimated.gas
    const reasons = [estimated.ok ? '' : estimated.detail, warning?.detail ?? '']
    throw new OperationError('TRANSACTION_WOULD_FAIL', {
      detail: reasons.filter(Boolean).join(' '),
      errors: warning ? [{ ...warning, reason: 'WOULD_FAIL' }] : [],
    })
  }
}
