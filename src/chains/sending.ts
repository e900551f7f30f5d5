// How a chain takes transactions that are signed outside of the service. `Signing` is pure and belongs to the
// family, so that what is stored can be read and signed while no node is configured; `Sending` needs nodes.
// Uses `contract` only. A family without managed transactions has neither.
import type { SendableContractType } from '../contract/records/assets.ts'

/** What is signed of a managed transaction, frozen when it is created. */
export type TransactionFields = {
  from: Buffer
  to: Buffer
  value: bigint
  gas: bigint
  gas_price: bigint
  data: Buffer
  nonce: number
  /** The chain that the signature is valid on. */
  chain_id: bigint
}

/** A transaction whose gas is to be estimated. */
export type EstimatedCall = Pick<TransactionFields, 'from' | 'to' | 'value' | 'data'>

/** A token that is to be sent. */
export type TokenPayment = {
  contract_type: SendableContractType
  contract_address: Buffer
  from: Buffer
  to: Buffer
  /** The amount, or the id of the one item. */
  value: bigint
}

/** How much gas a block holds, and the price below which it takes nothing. */
export type BlockLimits = { gas_limit: bigint; base_fee: bigint | undefined }

/** What came of handing a transaction to the nodes. */
export type Handover =
  /** A node has taken it, or knows it already. */
  | { kind: 'accepted' }
  /** Every node that got it refuses it: it is in no pool. */
  | { kind: 'refused'; detail: string }
  /** Its nonce is used; whether by itself is to be found out. */
  | { kind: 'nonce_used'; detail: string }
  /** No node got it. */
  | { kind: 'unsent'; detail: string }
  /** Whether a node has it is not known. */
  | { kind: 'unknown'; detail: string }

/** The transaction that used a nonce, and its block, as proved by the block itself. */
export type AccountNonceUse = {
  hash: Buffer
  block: { number: number; hash: Buffer }
  failed: boolean
}

/** What is against a token payment, and which part of it: the contract, or the amount or item. */
export type PaymentProblem = { part: 'contract_address' | 'value'; detail: string }

/** The bytes of a signed transaction, and the hash by which the chain knows it. */
export type SignedTransaction = { raw: Buffer; hash: Buffer }

/** What is signed, without asking any node. */
export type Signing = {
  /** The hash that the sender signs. */
  signingHash(fields: TransactionFields): Buffer
  /** Checks that a signature is the sender's and gives the signed transaction, or says what is wrong. */
  sign(
    fields: TransactionFields,
    signature: string,
  ): Promise<({ ok: true } & SignedTransaction) | { ok: false; detail: string }>
  /** The data of a token payment. */
  encodePayment(payment: TokenPayment): Buffer
}

/** How signed transactions reach a chain. */
export type Sending = {
  /** The chain id that is signed. */
  chainId(signal: AbortSignal): Promise<bigint>
  /** How many transactions of an address are on the chain, or also in the pools of the nodes. */
  transactionCount(address: Buffer, at: 'latest' | 'pending', signal: AbortSignal): Promise<number>
  gasPrice(signal: AbortSignal): Promise<bigint>
  /** What an address has of the native coin. */
  balance(address: Buffer, signal: AbortSignal): Promise<bigint>
  /** What the newest block allows and asks for; `base_fee` is undefined before EIP-1559. */
  blockLimits(signal: AbortSignal): Promise<BlockLimits>
  /** The least gas that any node takes for a transaction with this data. */
  intrinsicGas(data: Buffer): bigint
  /** What a call would cost, or in words why it would fail. */
  estimate(
    call: EstimatedCall,
    signal: AbortSignal,
  ): Promise<{ ok: true; gas: bigint } | { ok: false; detail: string }>
  /** What is against a payment that would fail: the token's own books; undefined where they agree. */
  explainPayment(payment: TokenPayment, signal: AbortSignal): Promise<PaymentProblem | undefined>
  /** Hands the signed bytes to every node; ends within its own time limit. */
  broadcast(raw: Buffer, hash: Buffer): Promise<Handover>
  /** The number of the block that a node says a transaction is in. */
  findBlockOf(hash: Buffer, signal: AbortSignal): Promise<number | undefined>
  /**
   * Who used a nonce, looked up in blocks up to a number; undefined when it is free there. Throws
   * ChainUnavailableError when no node has what it takes to find out.
   */
  findNonceUse(
    query: { from: Buffer; nonce: number; upTo: number; hint?: number | undefined },
    signal: AbortSignal,
  ): Promise<AccountNonceUse | undefined>
}
