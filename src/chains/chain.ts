// The port between chains and everything above: a `Family` holds the pure rules of a chain family, a `Chain`
// adds the nodes. It uses `contract` and `lib` only. A chain that passes `testing/conformance.ts` can be
// tracked without a change in any layer above.

import type { AssetKey, AssetType, ContractType } from '../contract/records/assets.ts'
import type { PresentedAsset, PresentedTransfer } from '../contract/records/presented.ts'
import type { TransferState } from '../contract/records/states.ts'
import type { ContractMetadata } from '../contract/records/token.ts'
import type { WalletService } from '../contract/variant.ts'
import type { ByteSet } from '../lib/bytes.ts'
import type { NodeStatus } from './nodes/status.ts'
import type { Sending, Signing } from './sending.ts'
import type { Tokens } from './tokens.ts'
import type { VerificationStatus } from './verification.ts'

/** No node of the chain can answer now; trying again later may help. */
export class ChainUnavailableError extends Error {
  override name = 'ChainUnavailableError'
}

/**
 * Nodes answered, and what they said cannot be used: too large, not decodable, not what its header
 * commits to. Asking again may help, but is not expected to.
 */
export class UnreadableError extends ChainUnavailableError {
  override name = 'UnreadableError'
}

/** No node that could be asked has the block, or what belongs to it, though the chain is past it. */
export class BlockMissingError extends ChainUnavailableError {
  override name = 'BlockMissingError'
  /** Whether every node was asked; otherwise one that is unreachable may still have it. */
  readonly isCertain: boolean
  constructor(message: string, { isCertain = true, ...options }: MissingOptions = {}) {
    super(message, options)
    this.isCertain = isCertain
  }
}

type MissingOptions = ErrorOptions & { isCertain?: boolean }

/** A node made something up in a block. Its next fetch refuses the same lie, so another node is asked. */
export class BlockForgedError extends ChainUnavailableError {
  override name = 'BlockForgedError'
}

/** The block asked for is not on the chain any more, or no node has its state. */
export class BlockGoneError extends Error {
  override name = 'BlockGoneError'
}

/** What reading a text gives: the canonical bytes, or a sentence that says what is wrong with it. */
export type Parsed = { ok: true; bytes: Buffer } | { ok: false; detail: string }

/** An asset with what is known of it. */
export type AssetView = AssetKey & {
  name: string | null
  symbol: string | null
  decimals: number | null
  token_uri: string | null
  token_data: string | null
  /** The text is left out because it is too long for a notification. */
  token_uri_omitted?: boolean
  token_data_omitted?: boolean
}

/** A stored transfer, ready to be printed. */
export type TransferView = {
  transaction_hash: Buffer
  asset: AssetView
  /** The tracked account from which it is seen, and on which side that is (0 out, 1 in). */
  address: Buffer
  side: number
  from: Buffer
  to: Buffer
  value: bigint
  transaction_fee: bigint
  /** With PENDING already worked out from the confirmations. */
  transfer_state: TransferState
  block_number: number
  block_time: Date
  /** The place in the block. */
  ordinal: number
  transfer_hash: Buffer | null
  external_hash: Buffer | null
  /** What the chain gave with the movement. */
  detail: Record<string, unknown> | null
}

/** A stored balance, ready to be printed; without an address it is a sum over addresses. */
export type BalanceView = {
  wallet_id: string
  address: Buffer | null
  asset: AssetView
  balance: bigint
  /** The token's own account of the address (T). */
  token_account_address: Buffer | null
}

/** What a token standard means for balances and records. */
export type TokenStandard = {
  asset_type: AssetType
  /** The key of its part in the metadata records (spec 2.6, 2.10). */
  key: keyof NonNullable<ContractMetadata>
  /** Whether each item is an asset of its own, known once it is first seen. */
  isCollection: boolean
}

/**
 * What is true of a chain without asking any node: how it writes things, and which rules the tracker
 * follows on it. Pure, so that what is stored stays readable while a chain is not configured.
 */
export type Family<service extends WalletService = WalletService> = {
  service: service
  /** The native coin. */
  native: AssetKey
  /** Whether a block that was seen can leave the chain. If not, a broken link stops the tracker. */
  reorganizes: boolean
  /**
   * How balances follow: `read` reads them at a confirmed block; `delta` adds the net changes of
   * confirmed blocks to a baseline, because the nodes answer for the present only (S).
   */
  balances: 'read' | 'delta'
  /**
   * Whether a balance may change without the block naming the account, so that all of them are compared
   * with the chain now and then: of the coin (P: some runtimes move it without an event), or of tokens
   * too, whose contracts need not emit an event (C).
   */
  changesSilently?: 'coin' | 'tokens'
  /** The standards of the token contracts that can be registered, by contract type (C). */
  standards?: Readonly<Record<ContractType, TokenStandard>>
  /** Whether tokens sit in accounts of their own, which are looked up too (T: jetton wallets). */
  tokenAccounts?: true
  /** What is signed of managed transactions, where the service has them (C). */
  signing?: Signing
  /** Reads any accepted form of an address, strictly (docs/decisions/requests.md). */
  parseAddress(text: string): Parsed
  /** The canonical text; empty bytes (mint, burn, pool) are the empty text. */
  formatAddress(address: Uint8Array): string
  /** The second form that T shows beside the canonical one. */
  formatUserFriendly?(address: Uint8Array): string
  /** Reads the token of `token_address`: a jetton master (T), a coin type (S). */
  parseToken?(text: string): Parsed
  /** The text of a token; empty for the native coin. */
  formatToken?(contract_address: Uint8Array): string
  /** Reads a transaction identifier in any of its forms; undefined when it is none. */
  parseTransactionHash(text: string): Buffer | undefined
  formatTransactionHash(hash: Uint8Array): string
  /** The field of requests, records and notifications that has the transaction identifier. */
  transactionField: 'transaction_hash' | 'transaction_digest'
  /** The record of spec 2.8, without what depends on the wallet that sees it. */
  presentTransfer(view: TransferView): PresentedTransfer<service>
  /**
   * What names a movement: the same for both ends, in whichever block its transaction is included,
   * and different for any two movements that one end sees.
   */
  transferKey(view: TransferView): readonly (string | number | Uint8Array)[]
  /** Whether the fee of the transaction counts with this record: with one of those of its payer. */
  paysFee(view: TransferView): boolean
  /** The record of spec 2.6. */
  presentAsset(view: BalanceView): PresentedAsset<service>
}

/** How addresses differ between networks of one family. */
export type AddressRules = {
  /** T: addresses that are marked for test networks are refused. */
  production?: boolean
  /** P: the prefix of printed addresses. */
  ss58_prefix?: number
}

/** The name of one block. */
export type BlockRef = { number: number; hash: Buffer }

/** A block's place in the chain. `number` is the checkpoint in S, the masterchain seqno in T. */
export type BlockHeader = BlockRef & {
  parent_hash: Buffer
  /** Milliseconds since the Unix epoch. */
  time: number
}

/** A token's own account of a tracked address (T: the jetton wallet). */
export type TokenAccount = { owner: Buffer; asset: AssetKey }

/** Which of a block's candidates are tracked. */
export type Tracked = {
  accounts: ByteSet
  contracts: ByteSet
  /** C: the asset types as which a contract is registered; without it, what its logs look like. */
  assetTypesOf?(contract: Uint8Array): Iterable<AssetType>
  /** By the account, of those among the candidates. */
  tokenAccount(account: Uint8Array): readonly TokenAccount[]
}

/** One movement of one asset. */
export type Movement = {
  /**
   * Its place in the block, independent of what is tracked: with the block it is
   * the key of the record, so that doing a block again changes nothing.
   */
  ordinal: number
  transaction_hash: Buffer
  asset: AssetKey
  /** Empty where that end has no account. */
  from: Buffer
  to: Buffer
  value: bigint
  /** What the transaction cost; it is the same on all its movements (see `paysFee`). */
  transaction_fee: bigint
  /** The transaction was reverted and nothing moved (C); such a movement is seen by the sender only. */
  failed?: boolean
  /** Seen from one end only, because the other end has a record of its own (T). */
  only?: 'from' | 'to'
  /** Where it differs from the block's (T: the transaction's own time), in milliseconds. */
  time?: number
  /** T: the message, by which a bounce finds the record; and the external message. */
  transfer_hash?: Buffer
  external_hash?: Buffer
  /**
   * JSON for the presenter: nonce (C), seq_no, workchain, shard, message … (T), and `pays_fee` on the
   * one with which its payer's fee counts (T, S, P).
   */
  detail?: Record<string, unknown>
}

/** A pair whose balance a block changed; with the net change on chains that follow by deltas. */
export type Touch = { address: Buffer; asset: AssetKey; delta?: bigint }

/** A later word on a record of an earlier block: the message bounced (T). */
export type MovementUpdate = { transfer_hash: Buffer; detail: Record<string, unknown> }

/** The contents of a block for tracked accounts. */
export type BlockContent = {
  /** In the order of their ordinals. */
  movements: readonly Movement[]
  /** Every pair whose balance changed, those without a movement (fees, rewards) too. */
  touched: readonly Touch[]
  updates?: readonly MovementUpdate[]
  /** How many things of a kind that the code does not know were left out, by kind. */
  unknown_kinds?: Readonly<Record<string, number>>
  /**
   * Transactions of tracked accounts that cannot be decoded. Everything else of the block is stored, and the
   * block becomes a gap, because their records are missing.
   */
  undecoded?: readonly Undecoded[]
}

/** A transaction that cannot be decoded, and why. */
export type Undecoded = { hash: Buffer; reason: string }

/** A transaction of a block as its sender knows it (C). */
export type SentTransaction = {
  from: Buffer
  nonce: number
  failed: boolean
  /** Made when it is asked for. */
  hash(): Buffer
}

/**
 * A block that was fetched and verified whole. What follows does no input or output: it runs inside
 * the transaction that stores the block.
 */
export type ChainBlock = BlockHeader & {
  /** The contracts whose events this block has; empty where the chain has none. */
  contracts: readonly Buffer[]
  /**
   * The accounts that may be concerned, found without decoding. `contracts` are those that an organization
   * watches: events of others need not be looked at. Too many is right, too few is a lost transfer.
   */
  accounts(contracts: ByteSet): Iterable<Buffer>
  /** Decodes what concerns tracked accounts. Ordinals do not depend on which accounts are tracked. */
  decode(tracked: Tracked): BlockContent
  /**
   * Whether a node's claims about tracked accounts, to which no root commits, are still to be checked
   * (C: senders, and what traces say that moved).
   */
  needsCheck?(tracked: Tracked): boolean
  /**
   * Checks these claims; asks nodes, so it runs outside of any transaction. Throws BlockForgedError for a
   * proven lie. What could not be confirmed is decoded with `verified: false`.
   */
  check?(tracked: Tracked, signal: AbortSignal): Promise<void>
  /** Every transaction, where the service sends some of them itself (C). */
  sent?: readonly SentTransaction[]
  /** What the chain needs to continue from here besides number and hash (T: shard tops); JSON. */
  detail?: unknown
  /** Data of the block that no node has, as text: the block becomes a gap, because records may be missing. */
  lacks?: string
  /** Whether what moved inside of calls is known (C); undefined where there is nothing to trace. */
  isTraced?: boolean
}

/**
 * Where following continues: the last block that was stored, with its detail and what it lacks, and
 * whether blocks of this network were traced before (C): then one that is not is incomplete.
 */
export type Position = BlockRef & Pick<ChainBlock, 'detail' | 'lacks' | 'isTraced'>

/** What following a chain gives. */
export type ChainEvent =
  /** Consecutive blocks, the first one the child of the last: one at the head, many when behind. */
  | { kind: 'blocks'; blocks: readonly ChainBlock[]; head: number }
  /** The last block given is not on the chain any more, as nodes say that have reached its height. */
  | { kind: 'fork' }
  /** No node can serve these blocks any more. Following continues after `to`, whose hash is given. */
  | { kind: 'gap'; from: number; to: BlockRef; reason: string }

/** A balance that is asked for. */
export type BalanceQuery = { address: Buffer; asset: AssetKey; token_account_address?: Buffer }

/**
 * A balance, and the block that it belongs to. Null where the contract that holds it fails whichever
 * node is asked (C: a token that reverts, T: a jetton wallet that throws): nothing is known then.
 */
export type BalanceReading = { balance: bigint | null; block_number: number }

/** The nodes of a chain for `/status`; a family may add fields of its own. */
export type ChainNodes = {
  /** As `chain_id` of the configuration; null until a node has said so. */
  chain_id: number | string | null
  head: number | null
  /** Missing where the chain does not own its nodes (C: they belong to the gateway). */
  upstreams?: NodeStatus[]
  /** How much of what nodes say is verified; missing where the chain has one level only. */
  verification?: VerificationStatus
}

/**
 * A chain with its nodes. Every function ends within 100 ms once its signal is aborted, and throws
 * ChainUnavailableError when no node answers.
 */
export type Chain = Family & {
  /** What the nodes say they are (chain id, genesis hash); a node that says otherwise is never used. */
  identity(signal: AbortSignal): Promise<string>
  /** The newest block: finalized in P, committed by the masterchain in T. Never goes back by itself. */
  head(signal: AbortSignal): Promise<BlockHeader>
  /**
   * The block of this number on the chain as it is now, by a node that has reached our head; a node
   * that lags is not asked. Undefined above the head; throws BlockMissingError when no node has it
   * any more.
   */
  header(number: number, signal: AbortSignal): Promise<BlockHeader | undefined>
  /**
   * Gives every block after a position in order, for ever. Fetches many at once when behind, waits
   * for a push at the head and polls behind it. Checks that each block is the child of the one
   * before; where the chain left the position it gives `fork` and ends, and is called again from the
   * common ancestor. Reading on is asking for more: nothing is fetched far ahead of the reader.
   */
  follow(after: Position, signal: AbortSignal): AsyncIterable<ChainEvent>
  /**
   * One block of the chain as it is now, whole, for history that was missed. Does not wait for nodes
   * that are unreachable: throws BlockMissingError where none has it. With `isTraced` (C) a block that cannot
   * be traced has `lacks`.
   */
  block(number: number, options: { isTraced?: boolean }, signal: AbortSignal): Promise<ChainBlock>
  /** The highest block that any node has shown; asks no node. */
  newest(): number | undefined
  /**
   * Balances of exactly this block, in the order of the queries, in as few requests as can be.
   * On a `delta` chain the block is a lower bound and each reading says which block it belongs to.
   * Throws BlockGoneError when the block left the chain or its state is pruned everywhere. A contract
   * that fails concerns its own readings only, and delays the others by a bounded time.
   */
  readBalances(
    queries: readonly BalanceQuery[],
    at: BlockRef,
    signal: AbortSignal,
  ): Promise<BalanceReading[]>
  /**
   * Whether an asset failed or was slow to read lately. Such ones are read after all others and a few
   * at a time, so that a hostile contract delays no other balance.
   */
  isReadApart?(asset: AssetKey): boolean
  tokens?: Tokens
  /** Where the service manages transactions (C). */
  sending?: Sending
  /** The rules of this network, stored so that its rows read the same without nodes; undefined until they are known. */
  addressRules?(): AddressRules | undefined
  /** What `/status` shows of the nodes. */
  status?(): ChainNodes
  stop(): Promise<void>
}
