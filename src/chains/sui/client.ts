// The transport to one Sui node: gRPC, with field masks, so that only what is used of a checkpoint is sent. The height in
// the header of an answer says how far the machine of a load balancer is that has answered.

import { ChannelCredentials } from '@grpc/grpc-js'
import { type GrpcTypes, GrpcWebFetchTransport, SuiGrpcClient } from '@mysten/sui/grpc'
import { GrpcTransport } from '@protobuf-ts/grpc-transport'
import { RpcError, type RpcMetadata } from '@protobuf-ts/runtime-rpc'
import { NodeFault } from '../nodes/fault.ts'
import { headersOf } from '../nodes/node-name.ts'
import { readDecimals, readTokenText } from '../token-text.ts'
import type { Member } from './summary.ts'

/** What a node says of itself. */
export type NodeInfo = { chainId: string; height: number; lowest: number }

/** A balance, and the newest checkpoint of the machine that answered; undefined where it does not say. */
export type HeldBalance = { balance: bigint; height: number | undefined }

/** What a node says of a coin type. */
export type CoinInfo = { name: string | null; symbol: string | null; decimals: number | null }

/** The few questions that are asked of a Sui node (`sui.rpc.v2`). */
export type SuiClient = {
  info(signal: AbortSignal): Promise<NodeInfo>
  /** One checkpoint, or the newest. */
  checkpoint(number: number | undefined, signal: AbortSignal): Promise<GrpcTypes.Checkpoint>
  /**
   * Consecutive checkpoints from `from` on and not beyond `to`: those that came before the server's
   * deadline. Throws where none came.
   */
  list(from: number, to: number, signal: AbortSignal): Promise<GrpcTypes.Checkpoint[]>
  /** The newest checkpoint and every one after it; ends when the node likes. */
  subscribe(signal: AbortSignal): AsyncIterable<GrpcTypes.Checkpoint>
  /** Coin objects and address balance together, as the node has them now. */
  balance(owner: string, coinType: string, signal: AbortSignal): Promise<HeldBalance>
  /** The BCS of versions of objects; undefined where the node does not have one. */
  objects(
    versions: readonly { id: string; version: bigint }[],
    signal: AbortSignal,
  ): Promise<(Uint8Array | undefined)[]>
  /** The BCS of transactions; undefined where the node does not have one. */
  transactions(digests: readonly string[], signal: AbortSignal): Promise<(Uint8Array | undefined)[]>
  /** The validators of an epoch, as the node says. */
  committee(epoch: number, signal: AbortSignal): Promise<Member[]>
  /** The last checkpoint of an epoch that is over. */
  lastOf(epoch: number, signal: AbortSignal): Promise<number>
  /** Undefined where the node knows no such coin. */
  coinInfo(coinType: string, signal: AbortSignal): Promise<CoinInfo | undefined>
  close(): void
}

/** How a node is spoken to. */
export type SuiTransport = 'grpc' | 'grpc-web'

// Only what records and balances are made of: about 600 bytes of a transaction.
const paths = [
  'sequence_number',
  'digest',
  'summary.timestamp',
  'summary.previous_digest',
  'transactions.digest',
  'transactions.transaction.sender',
  'transactions.transaction.gas_payment.owner',
  'transactions.effects.status',
  'transactions.effects.gas_used',
  'transactions.balance_changes',
]
// What a certificate is of: about 1,200 bytes more of a transaction.
const provable = ['summary.bcs', 'signature', 'contents.bcs', 'transactions.effects.bcs']

// A checkpoint may hold ten thousand transactions; the library stops at 4 MiB otherwise.
const largestMessage = 128 << 20

/** The name of the gRPC status behind an error; undefined where it is none. */
export const statusOf = (error: unknown): string | undefined =>
  error instanceof RpcError ? error.code : undefined

/** The `retry-after` that a server sent with an error. */
export const retryAfterOf = (error: unknown): string | undefined => {
  const value = error instanceof RpcError ? error.meta['retry-after'] : undefined
  return Array.isArray(value) ? value[0] : value
}

// Of the machine that answered: a load balancer has several, up to minutes apart (sui#27296).
const heightHeader = 'x-sui-checkpoint-height'

const heightIn = (meta: RpcMetadata): number | undefined => {
  const value = meta[heightHeader]
  const text = Array.isArray(value) ? value[0] : value
  return text !== undefined && /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined
}

/** The height that came with an answer or with a refusal. */
const heightOf = async (
  headers: Promise<RpcMetadata>,
  error: unknown,
): Promise<number | undefined> =>
  heightIn({
    ...(await headers.catch(() => ({}))),
    ...(error instanceof RpcError ? error.meta : {}),
  })

const behind = (height: number, number: number): NodeFault =>
  new NodeFault('behind', `the machine that answered is at ${height}, below ${number}`)

/** Refuses a URL of which a part would be dropped: providers put tokens there. */
const checkUrl = (url: URL, transport: SuiTransport): void => {
  if (url.search !== '')
    throw new Error('gRPC sends no query: remove it from the URL and send a token with headers')
  if (transport === 'grpc' && url.pathname.replace(/^\/+/, '') !== '')
    throw new Error(
      'native gRPC sends no path: remove it from the URL, send a token with headers, or use transport: grpc-web',
    )
}

const createTransport = (
  url: URL,
  transport: SuiTransport,
  meta: Record<string, string>,
): { transport: GrpcTransport | GrpcWebFetchTransport; close(): void } => {
  if (transport === 'grpc-web') {
    const base = new URL(url)
    base.username = ''
    base.password = ''
    const web = new GrpcWebFetchTransport({ baseUrl: base.href, format: 'binary', meta })
    return { transport: web, close() {} }
  }
  const isPlain = url.protocol === 'http:'
  const native = new GrpcTransport({
    host: `${url.hostname}:${url.port || (isPlain ? 80 : 443)}`,
    channelCredentials: isPlain
      ? ChannelCredentials.createInsecure()
      : ChannelCredentials.createSsl(),
    clientOptions: {
      'grpc.max_receive_message_length': largestMessage,
      'grpc.keepalive_time_ms': 30_000,
      'grpc.keepalive_timeout_ms': 10_000,
      'grpc.initial_reconnect_backoff_ms': 200,
      'grpc.max_reconnect_backoff_ms': 5_000,
      // Each node's own: the library shares connections between equal addresses otherwise.
      'grpc.use_local_subchannel_pool': 1,
    },
    meta,
  })
  return { transport: native, close: () => native.close() }
}

/** Connects to a node when it is first asked something. */
export function createSuiClient(options: {
  url: string
  transport?: SuiTransport
  headers?: Record<string, string>
  /** Whether checkpoints come with what proves them. */
  isProvable?: boolean
}): SuiClient {
  // Proofs triple the size of a checkpoint, so they are asked for only where they are verified.
  const readMask = { paths: options.isProvable ? [...paths, ...provable] : paths }
  const url = new URL(options.url)
  checkUrl(url, options.transport ?? 'grpc')
  // gRPC metadata has lower-case names.
  const lower = Object.entries(headersOf(url, options.headers ?? {})).map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  )
  const opened = createTransport(url, options.transport ?? 'grpc', Object.fromEntries(lower))
  const client = new SuiGrpcClient({ network: 'custom', transport: opened.transport })
  const { ledgerService, stateService, subscriptionService } = client

  return {
    info: async (abort) => {
      const { response } = await ledgerService.getServiceInfo({}, { abort })
      return {
        chainId: response.chainId ?? '',
        height: Number(response.checkpointHeight ?? 0n),
        lowest: Number(response.lowestAvailableCheckpoint ?? 0n),
      }
    },
    checkpoint: async (number, abort) => {
      const checkpointId =
        number === undefined
          ? ({ oneofKind: undefined } as const)
          : ({ oneofKind: 'sequenceNumber', sequenceNumber: BigInt(number) } as const)
      const call = ledgerService.getCheckpoint({ checkpointId, readMask }, { abort })
      try {
        return (await call.response).checkpoint!
      } catch (error) {
        // A machine that is behind has the checkpoint later; it has not pruned it.
        const height = await heightOf(call.headers, error)
        if (statusOf(error) === 'NOT_FOUND' && number !== undefined && (height ?? number) < number)
          throw behind(height!, number)
        throw error
      }
    },
    list: async (from, to, abort) => {
      const found: GrpcTypes.Checkpoint[] = []
      const call = ledgerService.listCheckpoints(
        {
          startCheckpoint: BigInt(from),
          endCheckpoint: BigInt(to + 1),
          readMask,
          options: { limit: to - from + 1 },
        },
        { abort },
      )
      try {
        for await (const { checkpoint } of call.responses) if (checkpoint) found.push(checkpoint)
      } catch (error) {
        // The deadline of a list is 5 s by default, in the middle of a page if it must be.
        if (abort.aborted || found.length === 0) throw error
      }
      if (found.length > 0) return found
      const height = await heightOf(call.headers, undefined)
      if (height !== undefined && height < from) throw behind(height, from)
      throw new Error(`no checkpoint from ${from} on`)
    },
    async *subscribe(abort) {
      const call = subscriptionService.subscribeCheckpoints({ readMask }, { abort })
      for await (const { checkpoint } of call.responses) if (checkpoint) yield checkpoint
    },
    balance: async (owner, coinType, abort) => {
      const { response, headers } = await stateService.getBalance({ owner, coinType }, { abort })
      return { balance: response.balance?.balance ?? 0n, height: heightIn(headers) }
    },
    objects: async (versions, abort) => {
      const requests = versions.map(({ id, version }) => ({ objectId: id, version }))
      const readMask = { paths: ['bcs'] }
      const { response } = await ledgerService.batchGetObjects({ requests, readMask }, { abort })
      return response.objects.map(({ result }) =>
        result.oneofKind === 'object' ? result.object.bcs?.value : undefined,
      )
    },
    transactions: async (digests, abort) => {
      const readMask = { paths: ['transaction.bcs'] }
      const { response } = await ledgerService.batchGetTransactions(
        { digests: [...digests], readMask },
        { abort },
      )
      return response.transactions.map(({ result }) =>
        result.oneofKind === 'transaction' ? result.transaction.transaction?.bcs?.value : undefined,
      )
    },
    committee: async (epoch, abort) => {
      const mask = { paths: ['epoch', 'committee'] }
      const { response } = await ledgerService.getEpoch(
        { epoch: BigInt(epoch), readMask: mask },
        { abort },
      )
      const { members = [] } = response.epoch?.committee ?? {}
      if (members.length === 0) throw new Error(`no committee of epoch ${epoch}`)
      return members.map(({ publicKey, weight }) => ({ key: publicKey!, power: weight ?? 0n }))
    },
    lastOf: async (epoch, abort) => {
      const mask = { paths: ['epoch', 'last_checkpoint'] }
      const { response } = await ledgerService.getEpoch(
        { epoch: BigInt(epoch), readMask: mask },
        { abort },
      )
      const last = response.epoch?.lastCheckpoint
      if (last === undefined) throw new Error(`no last checkpoint of epoch ${epoch}`)
      return Number(last)
    },
    coinInfo: async (coinType, abort) => {
      try {
        const { metadata } = (await stateService.getCoinInfo({ coinType }, { abort })).response
        // Its author chose them.
        return {
          name: readTokenText(metadata?.name),
          symbol: readTokenText(metadata?.symbol),
          decimals: readDecimals(metadata?.decimals),
        }
      } catch (error) {
        const status = statusOf(error)
        if (status === 'NOT_FOUND' || status === 'INVALID_ARGUMENT') return undefined
        throw error
      }
    },
    close: opened.close,
  }
}
