import { bcs } from '@mysten/sui/bcs'
import { GrpcTypes } from '@mysten/sui/grpc'
import { TransactionDataBuilder } from '@mysten/sui/transactions'
import {
  fromBase58,
  fromBase64,
  normalizeStructTag,
  normalizeSuiAddress,
  toBase58,
  toBase64,
} from '@mysten/sui/utils'
import { verifyTransactionSignature } from '@mysten/sui/verify'
import { type CoinInfo, devCoins, genesisOf } from './accounts.ts'
import { type Coin, createCoin, objectIdOf } from './coins.ts'
import { encodeEffects } from './effects.ts'
import { execute } from './execute.ts'
import { hash, u64 } from './hashing.ts'
import { type Checkpoint, createHistory, type History } from './history.ts'
import { type Journal, openJournal } from './journal.ts'
import { createState, type State, type Writes } from './state.ts'
import { invalid } from './status.ts'
import { createValidators, type Listed } from './validators.ts'

/** How a ledger is made. */
export type LedgerOptions = {
  seed: number
  /** The folder of its journal; without one it is in memory only. */
  directory?: string
  /** How much history is kept. */
  retain?: { checkpoints: number; transactions: number }
}

/** The chain itself: who owns what, which transactions ran, which checkpoints they are in. */
export type Ledger = {
  seed: number
  chainId: string
  /** As the newest transaction left it. */
  live: State
  /** As the newest checkpoint left it. */
  sealed: State
  history: History
  coinInfo(type: string): CoinInfo | undefined
  /** Makes a coin type known. */
  addCoin(type: string, info: CoinInfo): void
  /** Runs a signed transaction; the same one again changes nothing. */
  submit(bytes: Uint8Array, signatures: readonly Uint8Array[]): Promise<string>
  /** What a transaction would do. */
  dryRun(bytes: Uint8Array): GrpcTypes.ExecutedTransaction
  /** A transaction, in a checkpoint or not yet. */
  find(digest: string): GrpcTypes.ExecutedTransaction | undefined
  /** Closes the next checkpoint; without a time it is a quarter of a second after the last one. */
  seal(time?: number, options?: { endsEpoch?: boolean }): Checkpoint
  /** The validators of an epoch. */
  validators: ReturnType<typeof createValidators>
  onCheckpoint(listener: (checkpoint: Checkpoint) => void): () => void
  close(): void
}

type Pending = Listed & { executed: Uint8Array; writes: Writes }
type Line =
  | { format: number; seed: number; chain: string }
  | { coin: Omit<Coin, 'version' | 'balance'> & { version: string; balance: string } }
  | { funds: [string, string, string] }
  | { info: [string, CoinInfo] }
  | { checkpoint: Checkpoint; executed: string[] }
  | { live: true }
  | { tx: string; signatures: string[] }
  | { seal: number; ends?: true }

/** 2026-01-01, so that the same seed gives the same first checkpoint. */
const genesisTime = 1_767_225_600_000
const checkpointMs = 250
// A transaction takes about as long to do again as ten empty checkpoints.
const transactionWeight = 10
const mostWeight = 20_000

const toCoin = ({ coin }: Extract<Line, { coin: unknown }>): Coin => ({
  ...coin,
  version: BigInt(coin.version),
  balance: BigInt(coin.balance),
})

/** Opens a ledger: as its folder has it, or new from its seed. */
export function openLedger(options: LedgerOptions): Ledger {
  const { seed, directory } = options
  const retain = options.retain ?? { checkpoints: 50_000, transactions: 10_000 }
  const validators = createValidators(seed)
  const history = createHistory(retain, validators)
  const live = createState()
  const sealed = createState()
  const infos = new Map<string, CoinInfo>(devCoins)
  const listeners = new Set<(checkpoint: Checkpoint) => void>()
  const opened = directory === undefined ? undefined : openJournal(directory)
  const journal: Journal | undefined = opened?.journal
  let pending: Pending[] = []
  let weight = 0
  let chainId = ''

  const begin = (): void => {
    const salt = toBase58(hash('genesis of the simulator', String(seed)))
    for (const [index, { owner, type, balance }] of genesisOf(seed).entries()) {
      const id = objectIdOf(fromBase58(salt), index)
      const coin = createCoin({ id, version: 1n, type, owner, balance, previous: salt })
      for (const state of [live, sealed]) state.apply({ coins: [[id, coin]], funds: [] })
    }
    history.put(history.seal(genesisTime, [], { salt }), [])
    chainId = history.newest().digest
  }
  const dryRun = (bytes: Uint8Array) => {
    const data = bcs.TransactionData.parse(bytes).V1
    const digest = TransactionDataBuilder.getDigestFromBytes(bytes)
    const { effects, balanceChanges, writes } = execute(live, data, fromBase58(digest))
    const { gasData } = data
    const executed: GrpcTypes.ExecutedTransaction = {
      digest,
      transaction: {
        bcs: { name: 'TransactionData', value: bytes },
        digest,
        version: 1,
        sender: normalizeSuiAddress(data.sender),
        gasPayment: {
          owner: normalizeSuiAddress(gasData.owner),
          price: BigInt(gasData.price),
          budget: BigInt(gasData.budget),
          objects: gasData.payment.map((ref) => ({ ...ref, version: BigInt(ref.version) })),
        },
      },
      signatures: [],
      effects,
      balanceChanges,
    }
    return { executed, writes }
  }
  const run = (bytes: Uint8Array, signatures: readonly Uint8Array[]): void => {
    const { executed, writes } = dryRun(bytes)
    executed.signatures = signatures.map((value) => ({
      bcs: { name: 'UserSignatureBytes', value },
      signature: { oneofKind: undefined },
    }))
    // First on disk: what is shown after this line is not lost by any death of the process.
    record({ tx: toBase64(bytes), signatures: signatures.map(toBase64) }, transactionWeight)
    live.apply(writes)
    const bytesOfIt = GrpcTypes.ExecutedTransaction.toBinary(executed)
    const { digest = '', effects } = executed
    pending.push({
      digest,
      effects: effects!.digest!,
      signatures,
      executed: bytesOfIt,
      writes,
    })
  }
  const close = (time: number, endsEpoch: boolean): Checkpoint => {
    if (endsEpoch) pending.push(epochChange(history.newest().number + 1))
    const checkpoint = history.seal(time, pending, { endsEpoch })
    record({ seal: time, ...(endsEpoch && { ends: true }) }, 1)
    history.put(
      checkpoint,
      pending.map(({ executed }) => executed),
    )
    for (const { writes } of pending) sealed.apply(writes)
    pending = []
    return checkpoint
  }

  let replaying = true
  const record = (line: Line, cost: number): void => {
    weight += cost
    if (!replaying) journal?.append(line)
  }
  const restore = (line: Line): void => {
    if ('format' in line) {
      if (line.format !== 1 || line.seed !== seed)
        throw new Error(`the folder ${directory} holds a chain of seed ${line.seed}`)
      chainId = line.chain
    } else if ('coin' in line) {
      const coin = toCoin(line)
      for (const state of [live, sealed]) state.apply({ coins: [[coin.id, coin]], funds: [] })
    } else if ('funds' in line) {
      const [owner, type, amount] = line.funds
      for (const state of [live, sealed])
        state.apply({ coins: [], funds: [[owner, type, BigInt(amount)]] })
    } else if ('info' in line) infos.set(...line.info)
    else if ('checkpoint' in line) history.put(line.checkpoint, line.executed.map(fromBase64))
    else if ('tx' in line) run(fromBase64(line.tx), line.signatures.map(fromBase64))
    else if ('seal' in line) close(line.seal, line.ends === true)
    else weight = 0
  }
  function* snapshot(): Generator<Line> {
    yield { format: 1, seed, chain: chainId }
    for (const coin of live.coins())
      yield { coin: { ...coin, version: String(coin.version), balance: String(coin.balance) } }
    for (const [owner, type, amount] of live.funds()) yield { funds: [owner, type, String(amount)] }
    for (const info of infos) yield { info }
    for (const checkpoint of history.checkpoints())
      yield {
        checkpoint,
        executed: checkpoint.digests.map((digest) => toBase64(history.bytes(digest)!)),
      }
    yield { live: true }
  }
  const compact = (): void => {
    journal?.replace(snapshot())
    weight = 0
  }

  for (const line of (opened?.lines ?? []) as Line[]) restore(line)
  if (chainId === '') begin()
  replaying = false
  // The pending transactions of a process that died stand in the journal only.
  if (pending.length === 0) compact()

  return {
    seed,
    chainId,
    live,
    sealed,
    history,
    validators,
    coinInfo: (type) => infos.get(normalizeStructTag(type)),
    addCoin: (type, info) => {
      const full = normalizeStructTag(type)
      record({ info: [full, info] }, 1)
      infos.set(full, info)
    },
    submit: async (bytes, signatures) => {
      const digest = TransactionDataBuilder.getDigestFromBytes(bytes)
      const isKnown = () => history.has(digest) || pending.some((one) => one.digest === digest)
      if (isKnown()) return digest
      await checkSignatures(bytes, signatures)
      if (!isKnown()) run(bytes, signatures)
      return digest
    },
    dryRun: (bytes) => dryRun(bytes).executed,
    find: (digest) => {
      const waiting = pending.find((one) => one.digest === digest)
      return waiting
        ? GrpcTypes.ExecutedTransaction.fromBinary(waiting.executed)
        : history.executed(digest)
    },
    seal: (time, { endsEpoch = false } = {}) => {
      const checkpoint = close(time ?? history.newest().time + checkpointMs, endsEpoch)
      if (weight > mostWeight) compact()
      for (const listener of listeners) listener(checkpoint)
      return checkpoint
    },
    onCheckpoint: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close: () => journal?.close(),
  }
}

/** The transaction with which the network ends an epoch: it costs nothing and has no signature. */
function epochChange(number: number): Pending {
  const system = normalizeSuiAddress('0x0')
  const digest = toBase58(hash('epoch change of the simulator', u64(number)))
  const gasUsed = {
    ...{ computationCost: 0n, storageCost: 0n, storageRebate: 0n, nonRefundableStorageFee: 0n },
  }
  const { bytes, digest: effects } = encodeEffects({
    ...{ failure: undefined, gasUsed, transactionDigest: digest, version: 1n },
    ...{ before: new Map(), after: new Map(), funds: [] },
  })
  const executed = GrpcTypes.ExecutedTransaction.create({
    digest,
    transaction: { digest, sender: system, gasPayment: { owner: system, objects: [] } },
    effects: GrpcTypes.TransactionEffects.create({
      bcs: { name: 'TransactionEffects', value: bytes },
      digest: effects,
      status: { success: true },
      gasUsed,
      transactionDigest: digest,
    }),
  })
  return {
    digest,
    effects,
    signatures: [],
    executed: GrpcTypes.ExecutedTransaction.toBinary(executed),
    writes: { coins: [], funds: [] },
  }
}

/** The sender and the gas payer must have signed. */
async function checkSignatures(
  bytes: Uint8Array,
  signatures: readonly Uint8Array[],
): Promise<void> {
  const { sender, gasData } = bcs.TransactionData.parse(bytes).V1
  const missing = new Set([normalizeSuiAddress(sender), normalizeSuiAddress(gasData.owner)])
  for (const signature of signatures) {
    const key = await verifyTransactionSignature(bytes, toBase64(signature)).catch(
      (error: Error) => {
        throw invalid(`Invalid user signature: ${error.message}`)
      },
    )
    missing.delete(key.toSuiAddress())
  }
  if (missing.size > 0)
    throw invalid(`Required Signature from ${[...missing].join(', ')} is absent`)
}
