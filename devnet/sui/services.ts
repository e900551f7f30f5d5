import { GrpcStatusCode, GrpcTypes } from '@mysten/sui/grpc'
import { normalizeStructTag, normalizeSuiAddress } from '@mysten/sui/utils'
import { toObject } from './coins.ts'
import { gasPrice } from './execute.ts'
import type { Faults } from './faults.ts'
import { applyMask } from './field-mask.ts'
import { u64 } from './hashing.ts'
import { type Checkpoint, toTimestamp } from './history.ts'
import type { Ledger } from './ledger.ts'
import { resolveTransaction } from './resolve.ts'
import { invalid, notFound, StatusError } from './status.ts'
import { subscribe } from './subscribe.ts'

// biome-ignore lint/suspicious/noExplicitAny: the wire knows each method's own types
type Method = (request: any, signal: AbortSignal, behind: number) => unknown

/** The methods of the node by service. */
export type Services = Readonly<Record<string, Readonly<Record<string, Method>>>>

const usual = {
  checkpoint: ['sequence_number', 'digest'],
  object: ['object_id', 'version', 'digest'],
  owned: ['object_id', 'version', 'object_type'],
  executed: ['effects.status', 'checkpoint'],
}
const mostListed = 50
const mostPage = 1_000

const absent = { code: GrpcStatusCode.NOT_FOUND, message: 'not found', details: [] }

type Masked = { readMask?: { paths: string[] } }

/** How one endpoint answers from a ledger, with what is wrong with it. */
export function createServices(ledger: Ledger, faults: Faults): Services {
  const { history, live, sealed } = ledger
  const height = (): number => Math.max(0, history.newest().number - faults.lag)
  const lowest = (): number => Math.max(history.lowest(), faults.lowest)
  const at = (number: number): Checkpoint | undefined =>
    number >= lowest() && number <= height() ? history.at(number) : undefined
  const show = (checkpoint: Checkpoint, { readMask }: Masked): GrpcTypes.Checkpoint => {
    const whole = history.toProto(checkpoint)
    const shown = applyMask(GrpcTypes.Checkpoint, whole, readMask, usual.checkpoint)
    if (faults.garbled) return { ...shown, digest: 'garbled' }
    return faults.tamper ? faults.tamper(shown) : shown
  }
  const object = (
    { objectId = '', version }: { objectId?: string; version?: bigint },
    { readMask }: Masked,
    masks = usual.object,
  ) => {
    const id = normalizeSuiAddress(objectId)
    const coin = version === undefined ? live.coin(id) : live.version(id, version)
    const shown = coin && applyMask(GrpcTypes.Object, toObject(coin), readMask, masks)
    return shown && faults.tamperObject ? faults.tamperObject(shown) : shown
  }
  /** What the newest checkpoints changed: a machine that is so far behind does not have it yet. */
  const changedSince = (owner: string, coinType: string, behind: number): bigint => {
    let sum = 0n
    for (let number = history.newest().number, left = behind; left > 0 && number > 0; left--)
      for (const digest of history.at(number--)?.digests ?? [])
        for (const change of history.executed(digest)?.balanceChanges ?? [])
          if (change.address === owner && change.coinType === coinType)
            sum += BigInt(change.amount!)
    return sum
  }
  const balanceOf = (owner: string, coinType: string, behind: number): GrpcTypes.Balance => {
    const state = faults.eagerBalances ? live : sealed
    const coins = state.coinsOf(owner, coinType)
    const coinBalance = coins.reduce((sum, { balance }) => sum + balance, 0n)
    const addressBalance = state.fundsOf(owner, coinType)
    const missing = changedSince(owner, coinType, faults.indexLag + behind)
    return {
      coinType,
      balance: coinBalance + addressBalance - missing,
      addressBalance,
      coinBalance: coinBalance - missing,
    }
  }
  const isFull = (): void => {
    if (faults.archive) throw new StatusError(GrpcStatusCode.UNIMPLEMENTED, 'an archive')
  }
  const intact = (coinType: string): string => {
    if (faults.brokenCoins.includes(coinType))
      throw new StatusError(GrpcStatusCode.INTERNAL, `${coinType} is broken`)
    return coinType
  }
  const readType = (text: string | undefined): string => {
    try {
      return normalizeStructTag(text ?? '')
    } catch {
      throw invalid(`invalid coin_type: ${text}`)
    }
  }
  const executed = (digest: string | undefined, { readMask }: Masked) => {
    const found = digest === undefined ? undefined : ledger.find(digest)
    if (!found) throw notFound(`Transaction ${digest} not found`)
    return applyMask(GrpcTypes.ExecutedTransaction, found, readMask, ['digest'])
  }
  const listed = (): void => {
    if (faults.withoutLists) throw new StatusError(GrpcStatusCode.UNIMPLEMENTED, 'no list methods')
  }

  return {
    'sui.rpc.v2.LedgerService': {
      GetServiceInfo: () => ({
        chainId: ledger.chainId,
        chain: 'simulator',
        epoch: BigInt(history.newest().epoch ?? 0),
        checkpointHeight: BigInt(height()),
        timestamp: toTimestamp(history.at(height())?.time ?? history.newest().time),
        lowestAvailableCheckpoint: BigInt(lowest()),
        lowestAvailableCheckpointObjects: BigInt(lowest()),
        server: 'portolan-sui-simulator/1 (no Move VM)',
      }),
      GetEpoch: (request: GrpcTypes.GetEpochRequest) => {
        const epoch = Number(request.epoch ?? history.newest().epoch ?? 0)
        if (epoch > (history.newest().epoch ?? 0) + 1) throw notFound(`Epoch ${epoch} not found`)
        const last = history.lastOf(epoch)
        return {
          epoch: {
            epoch: BigInt(epoch),
            referenceGasPrice: gasPrice,
            ...(last !== undefined && { lastCheckpoint: BigInt(last) }),
            committee: {
              epoch: BigInt(epoch),
              members: faults.falseCommittee
                ? ledger.validators.members(epoch + 1_000)
                : ledger.validators.members(epoch),
            },
          },
        }
      },
      GetObject: (request: GrpcTypes.GetObjectRequest) => {
        const found = object(request, request)
        if (!found) throw notFound(`Object ${request.objectId} not found`)
        return { object: found }
      },
      BatchGetObjects: (request: GrpcTypes.BatchGetObjectsRequest) => ({
        objects: request.requests.map((one) => {
          const found = faults.withoutObjects ? undefined : object(one, request)
          return found
            ? { result: { oneofKind: 'object', object: found } }
            : { result: { oneofKind: 'error', error: absent } }
        }),
      }),
      BatchGetTransactions: (request: GrpcTypes.BatchGetTransactionsRequest) => ({
        transactions: request.digests.map((digest) => {
          const found = ledger.find(digest)
          const { ExecutedTransaction } = GrpcTypes
          return found
            ? {
                result: {
                  oneofKind: 'transaction',
                  transaction: applyMask(ExecutedTransaction, found, request.readMask, ['digest']),
                },
              }
            : { result: { oneofKind: 'error', error: absent } }
        }),
      }),
      GetTransaction: (request: GrpcTypes.GetTransactionRequest) => ({
        transaction: executed(request.digest, request),
      }),
      GetCheckpoint: (request: GrpcTypes.GetCheckpointRequest) => {
        const { checkpointId: id } = request
        const found =
          id.oneofKind === 'sequenceNumber'
            ? at(Number(id.sequenceNumber))
            : id.oneofKind === 'digest'
              ? [...history.checkpoints()].find(({ digest }) => digest === id.digest)
              : at(height())
        if (!found) throw notFound('Checkpoint not found')
        return { checkpoint: show(found, request) }
      },
      async *ListCheckpoints(request: GrpcTypes.ListCheckpointsRequest) {
        listed()
        const begin = Number(request.startCheckpoint ?? 0n)
        const end = Math.min(Number(request.endCheckpoint ?? 2n ** 50n), height() + 1)
        const limit = Math.min(request.options?.limit || 10, mostListed)
        if (begin < lowest())
          throw new StatusError(
            GrpcStatusCode.OUT_OF_RANGE,
            `start_checkpoint is below the lowest available checkpoint ${lowest()}`,
          )
        const { ITEM_LIMIT, CHECKPOINT_BOUND, LEDGER_TIP } = GrpcTypes.QueryEndReason
        for (let number = begin; number < end; number++) {
          if (number - begin === faults.listDeadline)
            throw new StatusError(
              GrpcStatusCode.DEADLINE_EXCEEDED,
              'list_checkpoints request deadline exceeded',
            )
          const isLast = number - begin + 1 === limit
          yield {
            checkpoint: show(history.at(number)!, request),
            watermark: { cursor: u64(number), checkpoint: BigInt(number) },
            ...(isLast && { end: { reason: ITEM_LIMIT } }),
          }
          if (isLast) return
        }
        const reason = end === Number(request.endCheckpoint) ? CHECKPOINT_BOUND : LEDGER_TIP
        yield { watermark: { cursor: u64(end) }, end: { reason } }
      },
    },
    'sui.rpc.v2.StateService': {
      GetBalance: (request: GrpcTypes.GetBalanceRequest, _: AbortSignal, behind: number) => {
        isFull()
        const owner = normalizeSuiAddress(request.owner ?? '')
        return { balance: balanceOf(owner, intact(readType(request.coinType)), behind) }
      },
      ListBalances: (request: GrpcTypes.ListBalancesRequest, _: AbortSignal, behind: number) => {
        isFull()
        const owner = normalizeSuiAddress(request.owner ?? '')
        const types = [...(faults.eagerBalances ? live : sealed).typesOf(owner)].toSorted()
        const { items, nextPageToken } = pageOf(types, request)
        return { balances: items.map((type) => balanceOf(owner, type, behind)), ...nextPageToken }
      },
      ListOwnedObjects: (request: GrpcTypes.ListOwnedObjectsRequest) => {
        isFull()
        const inner = /^0x0*2::coin::Coin<(.*)>$/.exec(request.objectType ?? '')?.[1]
        const owner = normalizeSuiAddress(request.owner ?? '')
        const coins = live
          .coinsOf(owner, inner && readType(inner))
          .toSorted((a, b) => (a.id < b.id ? -1 : 1))
        const { items, nextPageToken } = pageOf(coins, request)
        const objects = items.map(({ id }) => object({ objectId: id }, request, usual.owned)!)
        return { objects, ...nextPageToken }
      },
      GetCoinInfo: (request: GrpcTypes.GetCoinInfoRequest) => {
        isFull()
        const coinType = intact(readType(request.coinType))
        const metadata = ledger.coinInfo(coinType)
        if (!metadata) throw notFound(`Coin type ${coinType} not found`)
        return { coinType, metadata }
      },
    },
    'sui.rpc.v2.TransactionExecutionService': {
      ExecuteTransaction: async (request: GrpcTypes.ExecuteTransactionRequest) => {
        const bytes = request.transaction?.bcs?.value
        if (!bytes) throw invalid('missing transaction.bcs')
        const signatures = request.signatures.map(({ bcs }) => bcs?.value ?? new Uint8Array())
        const found = ledger.find(await ledger.submit(bytes, signatures))!
        const { ExecutedTransaction } = GrpcTypes
        return {
          transaction: applyMask(ExecutedTransaction, found, request.readMask, usual.executed),
        }
      },
      SimulateTransaction: (request: GrpcTypes.SimulateTransactionRequest) => {
        const bytes = request.transaction?.bcs?.value
        if (bytes) return { transaction: ledger.dryRun(bytes), commandOutputs: [] }
        const wanted = request.transaction
        if (!wanted) throw invalid('missing transaction')
        const transaction = resolveTransaction(live, wanted, request.doGasSelection === true)
        const effects = GrpcTypes.TransactionEffects.create({
          status: { success: true },
          epoch: 0n,
        })
        return {
          transaction: { transaction, effects, signatures: [], balanceChanges: [] },
          commandOutputs: [],
        }
      },
    },
    'sui.rpc.v2.SubscriptionService': {
      SubscribeCheckpoints: (
        request: GrpcTypes.SubscribeCheckpointsRequest,
        signal: AbortSignal,
      ) => {
        isFull()
        return subscribe({ ledger, faults, signal, show: (one) => show(one, request) })
      },
    },
  }
}

type Paged = { pageSize?: number; pageToken?: Uint8Array }

/** One page of a list; the token is the place where the next one begins. */
function pageOf<item>(items: readonly item[], { pageSize, pageToken }: Paged) {
  const begin = pageToken ? Number(Buffer.from(pageToken).toString()) : 0
  const end = begin + Math.min(pageSize || mostListed, mostPage)
  return {
    items: items.slice(begin, end),
    nextPageToken: end < items.length ? { nextPageToken: Buffer.from(String(end)) } : {},
  }
}
