import { bcs } from '@mysten/sui/bcs'
import { fromBase64, normalizeStructTag, normalizeSuiAddress } from '@mysten/sui/utils'
import { functions } from './functions.ts'
import { ExecutionFailure, invalid } from './status.ts'

/** A transaction as its BCS bytes read. */
export type TransactionData = Extract<
  ReturnType<typeof bcs.TransactionData.parse>,
  { $kind: 'V1' }
>['V1']
type Programmable = Extract<
  TransactionData['kind'],
  { $kind: 'ProgrammableTransaction' }
>['ProgrammableTransaction']
type Argument = Extract<
  Programmable['commands'][number],
  { $kind: 'SplitCoins' }
>['SplitCoins']['coin']

/** A coin while a transaction works on it; one that it made has no owner before it is transferred. */
export type Draft = { id: string; type: string; owner: string | undefined; balance: bigint }

/** What commands pass on to each other. */
export type Value =
  | { kind: 'coin'; coin: Draft }
  | { kind: 'balance'; type: string; amount: bigint }
  | { kind: 'withdrawal'; type: string; amount: bigint; owner: string }
  | { kind: 'pure'; bytes: Uint8Array }

/** A place that holds a value until it is taken. */
type Cell = { value: Value; taken: boolean; input: boolean }

/** What a program may do with the world. */
export type Machine = {
  sender: string
  /** Undefined where gas is paid from the address balance. */
  gas: Draft | undefined
  load(reference: { objectId: string; version: string; digest: string }): Draft
  create(type: string, balance: bigint): Draft
  destroy(coin: Draft): void
  /** Moves money into (or, negative, out of) the address balance of an account. */
  addFunds(owner: string, type: string, amount: bigint): void
  /** The most that may be withdrawn is checked before anything runs. */
  sponsor: string
}

/** Runs the commands of a transaction; which command failed is noted on the way. */
export function runProgram(
  { inputs, commands }: Programmable,
  machine: Machine,
  onCommand: (index: number) => void,
): void {
  const gasCell: Cell | undefined = machine.gas && {
    value: { kind: 'coin', coin: machine.gas },
    taken: false,
    input: true,
  }
  const given = inputs.map((input): Cell => ({ value: toValue(input), taken: false, input: true }))
  const results: Cell[][] = []

  function toValue(input: Programmable['inputs'][number]): Value {
    if (input.Pure) return { kind: 'pure', bytes: fromBase64(input.Pure.bytes) }
    if (input.Object?.ImmOrOwnedObject)
      return { kind: 'coin', coin: machine.load(input.Object.ImmOrOwnedObject) }
    if (input.FundsWithdrawal) {
      const { reservation, typeArg, withdrawFrom } = input.FundsWithdrawal
      if (withdrawFrom.SenderAllowance) throw invalid('the simulator has no allowances')
      return {
        kind: 'withdrawal',
        type: normalizeStructTag(typeArg.Balance),
        amount: BigInt(reservation.MaxAmountU64),
        owner: withdrawFrom.Sponsor ? machine.sponsor : machine.sender,
      }
    }
    throw invalid('the simulator knows owned coins only, no shared or received objects')
  }

  const cellOf = (argument: Argument): Cell => {
    const cell =
      argument.$kind === 'GasCoin'
        ? gasCell
        : argument.$kind === 'Input'
          ? given[argument.Input]
          : argument.$kind === 'Result'
            ? results[argument.Result]?.[0]
            : results[argument.NestedResult[0]]?.[argument.NestedResult[1]]
    if (!cell || cell.taken)
      throw new ExecutionFailure('COMMAND_ARGUMENT_ERROR', 'The argument is not there.')
    return cell
  }
  const take = (argument: Argument): Value => {
    const cell = cellOf(argument)
    if (cell.value.kind !== 'pure') cell.taken = true
    return cell.value
  }
  const coin = (value: Value): Draft => {
    if (value.kind === 'coin') return value.coin
    throw new ExecutionFailure('COMMAND_ARGUMENT_ERROR', 'The argument is not a coin.')
  }
  const pure = (argument: Argument): Uint8Array => {
    const { value } = cellOf(argument)
    if (value.kind === 'pure') return value.bytes
    throw new ExecutionFailure('COMMAND_ARGUMENT_ERROR', 'The argument is not a plain value.')
  }

  const run = (command: Programmable['commands'][number]): Value[] => {
    if (command.SplitCoins) {
      const source = coin(cellOf(command.SplitCoins.coin).value)
      return command.SplitCoins.amounts.map((argument) => {
        const amount = BigInt(bcs.u64().parse(pure(argument)))
        if (amount > source.balance)
          throw new ExecutionFailure(
            'INSUFFICIENT_COIN_BALANCE',
            'Insufficient coin balance for operation.',
          )
        source.balance -= amount
        return { kind: 'coin', coin: machine.create(source.type, amount) }
      })
    }
    if (command.MergeCoins) {
      const target = coin(cellOf(command.MergeCoins.destination).value)
      for (const argument of command.MergeCoins.sources) {
        const source = coin(take(argument))
        if (source.type !== target.type || source === target)
          throw new ExecutionFailure('COMMAND_ARGUMENT_ERROR', 'The coins cannot be merged.')
        target.balance += source.balance
        machine.destroy(source)
      }
      return []
    }
    if (command.TransferObjects) {
      const to = normalizeSuiAddress(bcs.Address.parse(pure(command.TransferObjects.address)))
      for (const argument of command.TransferObjects.objects) coin(take(argument)).owner = to
      return []
    }
    if (command.MoveCall) {
      const { package: account, module, function: name } = command.MoveCall
      const call = functions[`${BigInt(account).toString(16)}::${module}::${name}`]
      if (!call)
        throw new ExecutionFailure('FUNCTION_NOT_FOUND', 'The simulator knows coin functions only.')
      const types = command.MoveCall.typeArguments.map((type) => normalizeStructTag(type))
      return call(machine, types, command.MoveCall.arguments.map(take))
    }
    throw new ExecutionFailure('FEATURE_NOT_YET_SUPPORTED', 'The simulator has no Move VM.')
  }

  for (const [index, command] of commands.entries()) {
    onCommand(index)
    results.push(run(command).map((value) => ({ value, taken: false, input: false })))
  }
  // Coins and balances cannot be dropped in Move.
  const isLeft = ({ value, taken }: Cell) => !taken && ['coin', 'balance'].includes(value.kind)
  if (results.flat().some(isLeft))
    throw new ExecutionFailure('UNUSED_VALUE_WITHOUT_DROP', 'A coin was made and left over.')
}
