import Type, { type TSchema } from 'typebox'
import { Count, Decimal, EvmAddress, Hash, optional, Timestamp, text } from '../fields.ts'
import { maxTransactionHashes } from '../limits.ts'
import { operation } from '../operation.ts'
import { list, record } from '../variant.ts'

// Numbers of section 2.12 are JSON integers. What counts blocks, places and seconds fits a number.
const int = Type.Integer()
/** The mark of integers that are written, and read by the client, without loss beyond 2^53 − 1. */
export const anySize = 'an integer of any size'
const large = Type.Unsafe<number | bigint>({ type: 'integer', description: anySize })
const maybe = <schema extends TSchema>(schema: schema) => Type.Union([schema, Type.Null()])

/** Spec 2.12. */
export const Block = record('Block', {
  block_hash: text,
  block_number: int,
  difficulty: large,
  extra_data: text,
  gas_limit: large,
  gas_used: large,
  logs_bloom: text,
  miner: text,
  mix_hash: text,
  nonce: text,
  parent_hash: text,
  receipts_root: text,
  sha3_uncles: text,
  size: int,
  state_root: text,
  timestamp: int,
  transactions_root: text,
  uncles: Type.Array(text),
})

const signed = { r: text, s: text, v: text }
const call = {
  from: text,
  to: maybe(text),
  gas: large,
  gas_price: large,
  input: text,
  nonce: large,
}

/** Spec 2.12. */
export const PendingTransaction = record('PendingTransaction', {
  transaction_hash: text,
  ...call,
  value: text,
  ...signed,
  record_time: Timestamp,
})

/** Spec 2.12. */
export const Transaction = record('Transaction', {
  transaction_hash: text,
  block_number: int,
  block_hash: text,
  ...call,
  transaction_index: int,
  value: text,
  ...signed,
})

/** Spec 2.12. */
export const TransactionReceipt = record('TransactionReceipt', {
  transaction_hash: text,
  block_number: int,
  block_hash: text,
  contract_address: maybe(text),
  cumulative_gas_used: large,
  from: text,
  to: maybe(text),
  gas_used: large,
  logs_bloom: text,
  status: int,
  transaction_index: int,
  effective_gas_price: large,
})

/** Spec 2.12. */
export const InternalTransaction = record('InternalTransaction', {
  transaction_hash: text,
  from: text,
  to: maybe(text),
  gas: large,
  gas_used: large,
  input: text,
  output: text,
  call_type: text,
  trace_index: Type.String({ description: 'the path of the call, such as 0_2_1' }),
  value: Decimal,
  error: text,
})

/** Spec 2.12. */
export const Log = record('Log', {
  transaction_hash: text,
  address: text,
  data: text,
  topics: Type.Array(text),
  block_number: int,
  block_hash: text,
  transaction_index: int,
  log_index: int,
  removed: Type.Boolean(),
})

/** The chain-query operations (spec 4.1). */
export const query = {
  GetBlock: operation({
    summary: 'Read a block by its number.',
    services: 'Q',
    request: { block_number: Count },
    response: { block: Block },
  }),
  GetPendingTransaction: operation({
    summary: 'Read a pending transaction.',
    services: 'Q',
    request: { transaction_hash: Hash },
    response: { pending_transaction: PendingTransaction },
  }),
  GetTransaction: operation({
    summary: 'Read a transaction.',
    services: 'Q',
    request: { transaction_hash: Hash },
    response: { transaction: Transaction },
  }),
  GetTransactionReceipt: operation({
    summary: 'Read the receipt of a transaction.',
    services: 'Q',
    request: { transaction_hash: Hash },
    response: { transaction_receipt: TransactionReceipt },
  }),
  ListInternalTransactions: operation({
    summary: 'List the calls inside a transaction, depth first.',
    services: 'Q',
    request: { transaction_hash: Hash },
    response: { internal_transactions: list(InternalTransaction) },
  }),
  ListLogs: operation({
    summary: 'List the logs of a transaction.',
    services: 'Q',
    request: { transaction_hash: Hash },
    response: { logs: list(Log) },
  }),
  ListPendingTransactions: operation({
    summary: 'List the pending transactions of a sender.',
    services: 'Q',
    request: { from: EvmAddress, nonce: optional(Count) },
    response: { pending_transactions: list(PendingTransaction) },
  }),
  ListTransactions: operation({
    summary: `Read up to ${maxTransactionHashes} transactions, in the order of the request.`,
    services: 'Q',
    request: {
      transaction_hashes: Type.Array(Hash, {
        minItems: 1,
        maxItems: maxTransactionHashes,
        description: `1 to ${maxTransactionHashes} hashes`,
      }),
    },
    response: { transactions: list(Transaction) },
  }),
}
