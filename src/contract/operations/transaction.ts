import Type from 'typebox'
import {
  Count,
  Decimal,
  EvmAddress,
  extension,
  Hash,
  HexData,
  Id,
  leftOut,
  optional,
  Pagination,
  page,
  SendableContractType,
  text,
} from '../fields.ts'
import { operation } from '../operation.ts'
import { transactionStates } from '../records/states.ts'
import { list, record } from '../variant.ts'

/** Spec 2.9. */
export const ManagedTransaction = record('ManagedTransaction', {
  wallet_id: text,
  transaction_id: text,
  transaction_hash: Type.String({ description: 'empty until it is signed' }),
  transaction_state: Type.Enum(transactionStates),
  from: text,
  to: text,
  value: Decimal,
  gas: Decimal,
  gas_price: Decimal,
  data: text,
  nonce: Decimal,
  stuck: extension(
    Type.Boolean({ description: 'on its way for more than 10 minutes and not on the chain' }),
  ),
  last_error: extension(
    Type.String({
      description:
        'what the nodes last said against it, or what it waits for: a missing nonce and its holder, a price; empty when nothing',
    }),
  ),
  warnings: extension(
    Type.Array(extension(Type.String()), {
      description: 'what was doubtful when it was created, one sentence each',
    }),
  ),
  replaced_by: extension(
    Type.String({ description: 'the hash of the other transaction that took the nonce' }),
  ),
})

// Left out, the service chooses: gas by estimation, the price by the node, the nonce by what is free at the address.
// `transaction_id` is chosen by the caller as an idempotency key (spec 4.4).
const defaults = {
  gas: optional(
    leftOut(
      Decimal,
      "the node's estimate; where that fails, nothing is created and the reason is said",
    ),
  ),
  gas_price: optional(
    leftOut(Decimal, "the node's price; for a replacement at least 10 % above the other one's"),
  ),
  nonce: optional(
    leftOut(Count, "the lowest from the node's pending count on that no other transaction holds"),
  ),
  transaction_id: optional(
    leftOut(Id, 'a new one; one of your own is an idempotency key: the same call again pays once'),
  ),
}

const erc20 = Type.Object(
  { contract_address: EvmAddress, value: Decimal },
  { additionalProperties: false },
)
const erc721 = Type.Object(
  { contract_address: EvmAddress, token_id: Decimal },
  { additionalProperties: false },
)
const erc1155 = Type.Object(
  { contract_address: EvmAddress, token_id: Decimal, value: Decimal },
  { additionalProperties: false },
)
// JSON Schema could say "exactly one" only by `oneOf`, whose errors name no field; the handler checks the key instead.
const TokenPayload = Type.Object(
  { erc20: optional(erc20), erc721: optional(erc721), erc1155: optional(erc1155) },
  { additionalProperties: false, description: 'the key that matches contract_type, and no other' },
)

/** Managed transactions of variant C (spec 4.4). */
export const transaction = {
  CreateTransaction: operation({
    creates: true,
    summary: 'Create a transaction to be signed outside.',
    services: 'C',
    request: {
      wallet_id: Id,
      from: EvmAddress,
      to: EvmAddress,
      value: Decimal,
      data: optional(leftOut(HexData, 'empty: a plain payment')),
      ...defaults,
    },
    response: { transaction: ManagedTransaction },
  }),
  CreateTokenTransaction: operation({
    creates: true,
    summary: 'Create a token transfer to be signed outside.',
    services: 'C',
    request: {
      wallet_id: Id,
      contract_type: SendableContractType,
      from: EvmAddress,
      to: EvmAddress,
      token_payload: TokenPayload,
      ...defaults,
    },
    response: { transaction: ManagedTransaction },
  }),
  GetTransaction: operation({
    summary: 'Read a managed transaction, by its id or its hash.',
    services: 'C',
    request: { transaction_id: optional(Id), transaction_hash: optional(Hash) },
    anyOf: ['transaction_id', 'transaction_hash'],
    response: { transaction: ManagedTransaction },
  }),
  GetTransactionMessageToSign: operation({
    summary: 'Read the 32-byte hash that the sender signs.',
    services: 'C',
    request: { transaction_id: Id },
    response: { transaction_message_to_sign: text },
  }),
  ListTransactions: operation({
    summary: 'List managed transactions, newest first.',
    services: 'C',
    request: {
      wallet_id: optional(Id),
      address: optional(EvmAddress),
      transaction_state: optional(extension(Type.Enum(transactionStates))),
      ...page,
    },
    anyOf: ['wallet_id', 'address'],
    response: { transactions: list(ManagedTransaction), pagination: Pagination },
  }),
  SendTransaction: operation({
    summary: 'Broadcast a signed transaction.',
    services: 'C',
    request: { transaction_id: Id },
    response: { transaction: ManagedTransaction },
  }),
  SubmitTransactionSignature: operation({
    summary: 'Hand in the signature of a transaction.',
    services: 'C',
    request: { transaction_id: Id, signature: Type.String({ minLength: 1, maxLength: 200 }) },
    response: {},
  }),
  CancelTransaction: operation({
    summary: 'Cancel a transaction that was never broadcast.',
    services: 'C',
    request: { transaction_id: Id },
    response: {},
  }),
}
