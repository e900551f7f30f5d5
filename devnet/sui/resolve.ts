import { GrpcTypes } from '@mysten/sui/grpc'
import { normalizeSuiAddress } from '@mysten/sui/utils'
import { type Coin, SUI } from './coins.ts'
import { gasPrice } from './execute.ts'
import type { State } from './state.ts'
import { invalid, notFound } from './status.ts'

const budgetBase = 5_000_000n
const budgetPerObject = 1_500_000n
const mostPayment = 256

const referenceOf = ({ id, version, digest }: Coin) => ({ objectId: id, version, digest })

/** Fills in what a builder leaves open: object references, gas price, budget and payment. */
export function resolveTransaction(
  state: State,
  transaction: GrpcTypes.Transaction,
  doGasSelection: boolean,
): GrpcTypes.Transaction {
  const resolved = GrpcTypes.Transaction.clone(transaction)
  const data = resolved.kind?.data
  if (data?.oneofKind !== 'programmableTransaction')
    throw invalid('only programmable transactions can be sent')
  const { inputs, commands } = data.programmableTransaction
  const used = new Set<string>()
  for (const input of inputs) {
    if (!input.objectId) continue
    const coin = state.coin(normalizeSuiAddress(input.objectId))
    if (!coin) throw notFound(`Object ${input.objectId} not found`)
    Object.assign(input, referenceOf(coin), {
      kind: GrpcTypes.Input_InputKind.IMMUTABLE_OR_OWNED,
    })
    used.add(coin.id)
  }
  const gas = resolved.gasPayment ?? GrpcTypes.GasPayment.create()
  resolved.gasPayment = gas
  const owner = normalizeSuiAddress(gas.owner ?? resolved.sender ?? '0x0')
  gas.owner = owner
  gas.price ??= gasPrice
  const made = commands.reduce(
    (sum, { command }) =>
      sum + (command.oneofKind === 'splitCoins' ? command.splitCoins.amounts.length : 1),
    inputs.length,
  )
  gas.budget ??= budgetBase + budgetPerObject * BigInt(made)
  if (!doGasSelection || gas.objects.length > 0) return resolved
  const coins = state
    .coinsOf(owner, SUI)
    .filter(({ id }) => !used.has(id))
    .toSorted((a, b) =>
      a.balance === b.balance ? (a.id < b.id ? -1 : 1) : a.balance < b.balance ? 1 : -1,
    )
    .slice(0, mostPayment)
  const isEnough = coins.reduce((sum, { balance }) => sum + balance, 0n) >= gas.budget
  // Without coins the address balance pays, which an empty payment says.
  if (!isEnough && state.fundsOf(owner, SUI) < gas.budget)
    throw invalid('Unable to perform gas selection due to insufficient SUI balance')
  gas.objects = isEnough ? coins.map(referenceOf) : []
  return resolved
}
