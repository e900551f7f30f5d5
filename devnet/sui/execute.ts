import { GrpcTypes } from '@mysten/sui/grpc'
import { normalizeStructTag, normalizeSuiAddress, toBase58 } from '@mysten/sui/utils'
import {
  type Coin,
  createCoin,
  objectIdOf,
  objectTypeOf,
  SUI,
  storageCost,
  storageRebate,
} from './coins.ts'
import { encodeEffects } from './effects.ts'
import { type Draft, type Machine, runProgram, type TransactionData } from './program.ts'
import type { State, Writes } from './state.ts'
import { ExecutionFailure, invalid } from './status.ts'

/** What a transaction came to. */
export type Outcome = {
  effects: GrpcTypes.TransactionEffects
  balanceChanges: GrpcTypes.BalanceChange[]
  writes: Writes
}

/** The price of a unit of gas, and the least budget. */
export const gasPrice = 1_000n
export const leastBudget = 2_000_000n
const computationUnits = 1_000n
const most = (1n << 64n) - 1n

type Funds = [owner: string, type: string, amount: bigint]

/** Works out what a transaction does, without doing it. Refuses what no validator would sign. */
export function execute(state: State, data: TransactionData, digest: Uint8Array): Outcome {
  const { gasData } = data
  const sender = normalizeSuiAddress(data.sender)
  const payer = normalizeSuiAddress(gasData.owner)
  const program = data.kind.ProgrammableTransaction
  if (!program) throw invalid('only programmable transactions can be sent')
  const budget = BigInt(gasData.budget)
  const price = BigInt(gasData.price)
  if (price < gasPrice) throw invalid(`Gas price ${price} under reference gas price ${gasPrice}`)
  if (budget < leastBudget) throw invalid(`Gas budget: ${budget} is lower than min: ${leastBudget}`)
  checkWithdrawals(state, program.inputs, {
    sender,
    payer,
    budget: gasData.payment.length ? 0n : budget,
  })

  const before = new Map<string, Coin>()
  const load = (
    ref: { objectId: string; version: string; digest: string },
    owner: string,
  ): Coin => {
    const coin = state.coin(normalizeSuiAddress(ref.objectId))
    if (!coin) throw invalid(`Could not find the referenced object ${ref.objectId}`)
    if (coin.version !== BigInt(ref.version) || coin.digest !== ref.digest)
      throw invalid(
        `Object ${coin.id} version ${ref.version} is not available for consumption, current version: ${coin.version}`,
      )
    if (coin.owner !== owner)
      throw invalid(`Object ${coin.id} is owned by ${coin.owner}, and not by ${owner}`)
    if (before.has(coin.id)) throw invalid(`Object ${coin.id} is given twice`)
    before.set(coin.id, coin)
    return coin
  }
  const payment = gasData.payment.map((ref) => load(ref, payer))
  if (payment.some(({ type }) => type !== SUI)) throw invalid('Gas is paid in SUI')
  const total = payment.reduce((sum, { balance }) => sum + balance, 0n)
  if (payment.length > 0 && total < budget)
    throw invalid(`Balance of gas object ${total} is lower than the needed amount: ${budget}`)

  let drafts = new Map<string, Draft>()
  let funds: Funds[] = []
  let created = 0
  /** All inputs as they are, with the payment in one coin. */
  const restart = (): Draft | undefined => {
    drafts = new Map(
      [...before].map(([id, { type, owner, balance }]) => [id, { id, type, owner, balance }]),
    )
    funds = []
    for (const { id } of payment.slice(1)) drafts.delete(id)
    const gas = payment[0] && drafts.get(payment[0].id)
    if (gas) gas.balance = total
    return gas
  }
  const machine: Machine = {
    sender,
    sponsor: payer,
    gas: undefined,
    load: (ref) => {
      const { id, type, owner, balance } = load(ref, sender)
      const draft = { id, type, owner, balance }
      drafts.set(id, draft)
      return draft
    },
    create: (type, balance) => {
      const draft = { id: objectIdOf(digest, created++), type, owner: undefined, balance }
      drafts.set(draft.id, draft)
      return draft
    },
    destroy: ({ id }) => drafts.delete(id),
    addFunds: (owner, type, amount) => void funds.push([owner, type, amount]),
  }

  let gas = restart()
  let failure: { error: ExecutionFailure; command: number } | undefined
  let command = 0
  const bill = () => {
    const computationCost = computationUnits * price
    const cost = {
      computationCost,
      storageCost: storageCost * BigInt(drafts.size),
      storageRebate: storageRebate * BigInt(before.size),
      nonRefundableStorageFee: (storageCost - storageRebate) * BigInt(before.size),
    }
    return { cost, net: cost.computationCost + cost.storageCost - cost.storageRebate }
  }
  try {
    // The budget is set aside while the commands run.
    if (gas) gas.balance -= budget
    runProgram(program, { ...machine, gas }, (index) => {
      command = index
    })
    if (gas) gas.balance += budget
    if (bill().net > budget) throw new ExecutionFailure('INSUFFICIENT_GAS', 'Insufficient Gas.')
    if ([...drafts.values()].some(({ balance }) => balance > most))
      throw new ExecutionFailure('COIN_BALANCE_OVERFLOW', 'The balance does not fit.')
  } catch (error) {
    if (!(error instanceof ExecutionFailure)) throw error
    failure = { error, command }
    gas = restart()
  }
  const { cost, net } = bill()
  if (gas) gas.balance -= net
  else funds.push([payer, SUI, -net])

  const transactionDigest = toBase58(digest)
  const version =
    1n + [...before.values()].reduce((top, { version }) => (version > top ? version : top), 0n)
  const after = new Map(
    [...drafts.values()].map(({ id, type, owner = sender, balance }) => [
      id,
      createCoin({ id, version, type, owner, balance, previous: transactionDigest }),
    ]),
  )
  const changed = [...new Set([...before.keys(), ...after.keys()])].toSorted()
  const changedObjects = changed.map((id) => toChanged(id, before.get(id), after.get(id)))
  const encoded = encodeEffects({
    ...{ failure, gasUsed: cost, transactionDigest, version, before, after, funds },
  })
  return {
    effects: GrpcTypes.TransactionEffects.create({
      bcs: { name: 'TransactionEffects', value: encoded.bytes },
      digest: encoded.digest,
      version: 2,
      status: failure ? { success: false, error: toError(failure) } : { success: true },
      epoch: 0n,
      gasUsed: cost,
      transactionDigest,
      ...(payment[0] && { gasObject: changedObjects[changed.indexOf(payment[0].id)]! }),
      lamportVersion: version,
      changedObjects,
    }),
    balanceChanges: changesOf(before, after, funds),
    writes: { coins: changed.map((id) => [id, after.get(id) ?? null] as const), funds },
  }
}

/** What is promised out of address balances must be there before anything runs. */
function checkWithdrawals(
  state: State,
  inputs: readonly { FundsWithdrawal?: unknown }[],
  { sender, payer, budget }: { sender: string; payer: string; budget: bigint },
): void {
  const wanted = new Map<string, bigint>()
  const want = (owner: string, type: string, amount: bigint) =>
    wanted.set(`${owner} ${type}`, (wanted.get(`${owner} ${type}`) ?? 0n) + amount)
  if (budget > 0n) want(payer, SUI, budget)
  type Withdrawal = {
    reservation: { MaxAmountU64: string }
    typeArg: { Balance: string }
    withdrawFrom: { Sponsor?: true }
  }
  for (const { FundsWithdrawal } of inputs) {
    if (!FundsWithdrawal) continue
    const { reservation, typeArg, withdrawFrom } = FundsWithdrawal as Withdrawal
    want(
      withdrawFrom.Sponsor ? payer : sender,
      normalizeStructTag(typeArg.Balance),
      BigInt(reservation.MaxAmountU64),
    )
  }
  for (const [key, amount] of wanted) {
    const [owner = '', type = ''] = key.split(' ')
    const there = state.fundsOf(owner, type)
    if (there < amount)
      throw invalid(`Address balance of ${owner} is ${there}, lower than the needed ${amount}`)
  }
}

const toOwner = (address: string) => ({ kind: GrpcTypes.Owner_OwnerKind.ADDRESS, address })

function toChanged(
  id: string,
  was: Coin | undefined,
  is: Coin | undefined,
): GrpcTypes.ChangedObject {
  const input = GrpcTypes.ChangedObject_InputObjectState
  const output = GrpcTypes.ChangedObject_OutputObjectState
  const operation = GrpcTypes.ChangedObject_IdOperation
  return {
    objectId: id,
    inputState: was ? input.EXISTS : input.DOES_NOT_EXIST,
    ...(was && {
      inputVersion: was.version,
      inputDigest: was.digest,
      inputOwner: toOwner(was.owner),
    }),
    outputState: is ? output.OBJECT_WRITE : output.DOES_NOT_EXIST,
    ...(is && {
      outputVersion: is.version,
      outputDigest: is.digest,
      outputOwner: toOwner(is.owner),
    }),
    idOperation: was && is ? operation.NONE : is ? operation.CREATED : operation.DELETED,
    objectType: objectTypeOf((is ?? was)!.type),
  }
}

const toError = ({ error, command }: { error: ExecutionFailure; command: number }) => ({
  kind: error.kind,
  description: error.message,
  command: BigInt(command),
  errorDetails:
    error.abortCode === undefined
      ? { oneofKind: undefined }
      : { oneofKind: 'abort' as const, abort: { abortCode: error.abortCode } },
})

/** The net change of every owner and coin type, as a node derives it: coins and address balances. */
function changesOf(
  before: ReadonlyMap<string, Coin>,
  after: ReadonlyMap<string, Coin>,
  funds: readonly Funds[],
): GrpcTypes.BalanceChange[] {
  const sums = new Map<string, bigint>()
  const add = (owner: string, type: string, amount: bigint) =>
    sums.set(`${owner} ${type}`, (sums.get(`${owner} ${type}`) ?? 0n) + amount)
  for (const { owner, type, balance } of before.values()) add(owner, type, -balance)
  for (const { owner, type, balance } of after.values()) add(owner, type, balance)
  for (const change of funds) add(...change)
  return [...sums]
    .filter(([, amount]) => amount !== 0n)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, amount]) => {
      const space = key.indexOf(' ')
      return {
        address: key.slice(0, space),
        coinType: key.slice(space + 1),
        amount: String(amount),
      }
    })
}
