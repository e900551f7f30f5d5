import { bcs, TypeTagSerializer } from '@mysten/sui/bcs'
import { toBase58 } from '@mysten/sui/utils'
import { type Coin, objectIdOf } from './coins.ts'
import { hash } from './hashing.ts'

type GasUsed = Record<
  'computationCost' | 'storageCost' | 'storageRebate' | 'nonRefundableStorageFee',
  bigint
>
const stateOf = (coin: Coin | undefined) =>
  coin
    ? { Exist: [[coin.version, coin.digest], { AddressOwner: coin.owner }] as const }
    : { NotExist: true as const }

/** The effects of a transaction in BCS, version 2, and their digest. */
export function encodeEffects(effects: {
  failure: { command: number } | undefined
  gasUsed: GasUsed
  transactionDigest: string
  version: bigint
  before: ReadonlyMap<string, Coin>
  after: ReadonlyMap<string, Coin>
  /** Changes of address balances, which are writes to accumulators. */
  funds: readonly (readonly [owner: string, type: string, amount: bigint])[]
}): { bytes: Uint8Array; digest: string } {
  const { failure, gasUsed, transactionDigest, version, before, after, funds } = effects
  const coins = [...new Set([...before.keys(), ...after.keys()])].toSorted().map((id) => {
    const [was, is] = [before.get(id), after.get(id)]
    return [
      id,
      {
        inputState: stateOf(was),
        outputState: is
          ? { ObjectWrite: [is.digest, { AddressOwner: is.owner }] as const }
          : { NotExist: true as const },
        idOperation: was && is ? { None: true } : is ? { Created: true } : { Deleted: true },
      },
    ] as const
  })
  const accumulators = funds.map(([address, type, amount], index) => {
    const id = objectIdOf(hash('accumulator', transactionDigest), index)
    const change = {
      inputState: { NotExist: true as const },
      outputState: {
        AccumulatorWriteV1: {
          address: {
            address,
            ty: TypeTagSerializer.parseFromStr(`0x2::balance::Balance<${type}>`, true),
          },
          operation: amount < 0n ? { Split: true } : { Merge: true },
          value: { Integer: amount < 0n ? -amount : amount },
        },
      },
      idOperation: { None: true },
    }
    return [id, change] as const
  })
  const bytes = bcs.TransactionEffects.serialize({
    V2: {
      // The simulator has no Move VM: which error it was is in the decoded effects only.
      status: failure
        ? { Failure: { error: { InvariantViolation: true }, command: failure.command } }
        : { Success: true },
      executedEpoch: 0,
      gasUsed,
      transactionDigest,
      gasObjectIndex: null,
      eventsDigest: null,
      dependencies: [],
      lamportVersion: version,
      changedObjects: [...coins, ...accumulators],
      unchangedConsensusObjects: [],
      auxDataDigest: null,
    },
  }).toBytes()
  return { bytes, digest: toBase58(hash('TransactionEffects::', bytes)) }
}
