import { bcs } from '@mysten/sui/bcs'
import { normalizeSuiAddress } from '@mysten/sui/utils'
import type { Machine, Value } from './program.ts'
import { ExecutionFailure } from './status.ts'

/** What a Move function does here: its type arguments and arguments in, its results out. */
type MoveFunction = (
  machine: Machine,
  types: readonly string[],
  values: readonly Value[],
) => Value[]

const bad = () => new ExecutionFailure('ARITY_MISMATCH', 'The arguments do not fit the function.')

const amountIn = (machine: Machine, value: Value | undefined): { type: string; amount: bigint } => {
  if (value?.kind === 'coin') {
    machine.destroy(value.coin)
    return { type: value.coin.type, amount: value.coin.balance }
  }
  if (value?.kind === 'balance') return value
  throw bad()
}

const pure = (value: Value | undefined): Uint8Array => {
  if (value?.kind !== 'pure') throw bad()
  return value.bytes
}

const sendFunds: MoveFunction = (machine, _, [value, to]) => {
  const { type, amount } = amountIn(machine, value)
  machine.addFunds(normalizeSuiAddress(bcs.Address.parse(pure(to))), type, amount)
  return []
}

const redeem = (machine: Machine, value: Value | undefined) => {
  if (value?.kind !== 'withdrawal') throw bad()
  machine.addFunds(value.owner, value.type, -value.amount)
  return value
}

const makeCoin = (machine: Machine, type: string | undefined, amount: bigint): Value => {
  if (type === undefined) throw bad()
  return { kind: 'coin', coin: machine.create(type, amount) }
}

const destroyZero: MoveFunction = (machine, _, [value]) => {
  if (amountIn(machine, value).amount === 0n) return []
  throw new ExecutionFailure('MOVE_ABORT', 'The balance is not zero.', 0n)
}

const u64Of = (value: Value | undefined): bigint => BigInt(bcs.u64().parse(pure(value)))

/**
 * The Move functions that the simulator knows, by package, module and name: those of the framework
 * that move coins, and a package of its own (0xde7) that stands for everything that happens inside
 * of contracts: coins come from nowhere, go away, are swapped, or nothing happens at all.
 */
export const functions: Readonly<Record<string, MoveFunction>> = {
  '2::coin::send_funds': sendFunds,
  '2::balance::send_funds': sendFunds,
  '2::coin::redeem_funds': (machine, _, [value]) => {
    const { type, amount } = redeem(machine, value)
    return [makeCoin(machine, type, amount)]
  },
  '2::balance::redeem_funds': (machine, _, [value]) => {
    const { type, amount } = redeem(machine, value)
    return [{ kind: 'balance', type, amount }]
  },
  '2::coin::into_balance': (machine, _, [value]) => [
    { kind: 'balance', ...amountIn(machine, value) },
  ],
  '2::coin::from_balance': (machine, _, [value]) => {
    const { type, amount } = amountIn(machine, value)
    return [makeCoin(machine, type, amount)]
  },
  '2::coin::zero': (machine, [type]) => [makeCoin(machine, type, 0n)],
  '2::balance::zero': (_, [type = '']) => [{ kind: 'balance', type, amount: 0n }],
  '2::coin::destroy_zero': destroyZero,
  '2::balance::destroy_zero': destroyZero,
  'de7::treasury::mint': (machine, [type], [amount]) => [makeCoin(machine, type, u64Of(amount))],
  'de7::treasury::burn': (machine, _, [value]) => {
    amountIn(machine, value)
    return []
  },
  'de7::pool::swap': (machine, [, wanted], [value]) => [
    makeCoin(machine, wanted, amountIn(machine, value).amount),
  ],
  'de7::calls::nothing': () => [],
  'de7::calls::fail': (_, __, [code]) => {
    throw new ExecutionFailure('MOVE_ABORT', 'The function aborts.', u64Of(code))
  },
}
