// The records of requests and answers, as schemas with descriptions. They may use `contract` only. Field names
// are the names on the wire, in TypeScript and in SQL.

import Type from 'typebox'
import { AssetType, Count, Decimal, extension, optional, Timestamp, text } from '../fields.ts'
import { maxAddressesPerAnswer, maxListedAddresses } from '../limits.ts'
import { each, only, record } from '../variant.ts'
import { transferDirections, transferStates, transferTypes } from './states.ts'

/** Spec 2.4. */
export const Wallet = record('Wallet', {
  wallet_id: text,
  name: text,
  addresses: Type.Array(text, {
    description: `at most ${maxListedAddresses} in GetWallet, and ${maxAddressesPerAnswer} divided by page_size in ListWallets`,
  }),
  address_count: extension(Count),
  addresses_truncated: extension(
    Type.Boolean({ description: 'whether the wallet has more; ListAddresses pages them all' }),
  ),
  create_time: Timestamp,
  update_time: Timestamp,
  confirmation: only('SC', Type.Integer()),
  address_mapping: only(
    'T',
    Type.Array(Type.Object({ address: text, user_friendly_address: text })),
  ),
})

/** Spec 2.5; at the top level of GetAddress. */
export const AddressRecord = record('Address', {
  address: text,
  wallet_id: text,
  user_friendly_address: only('T', text),
})

/** An address in the list of its wallet. */
export const WalletAddress = record('WalletAddress', {
  address: text,
  user_friendly_address: only('T', text),
  create_time: Timestamp,
})

const erc20 = Type.Object({
  contract_address: text,
  name: text,
  symbol: text,
  decimals: optional(Type.Integer({ description: 'missing where the contract does not say it' })),
})
const erc721 = Type.Object({
  contract_address: text,
  name: text,
  symbol: text,
  token_id: text,
  token_uri: text,
  token_data: Type.String({ description: 'a JSON text' }),
})
const erc1155 = Type.Object({
  contract_address: text,
  token_id: text,
  token_uri: text,
  token_data: text,
})

/** Spec 2.6: at most one of the three. */
export const TokenMetadata = Type.Object({
  erc20: optional(erc20),
  erc721: optional(erc721),
  erc1155: optional(erc1155),
})

/** Spec 2.6. */
export const Asset = record('Asset', {
  wallet_id: text,
  address: Type.String({ description: 'empty in an aggregated record' }),
  asset_type: AssetType,
  balance: Decimal,
  user_friendly_address: only('T', text),
  asset_metadata: only('C', TokenMetadata),
  token_address: only('TSP', extension(text)),
  token_account_address: only('T', extension(text)),
  is_unreadable: only(
    'TC',
    extension(
      Type.Boolean({
        description:
          'true while the contract that holds the balance fails when it is asked: balance is then the last one that could be read',
      }),
    ),
  ),
})

/** The balance of an asset after a transfer. */
export const BalancePoint = record('BalancePoint', {
  transfer_id: text,
  transfer_time: Timestamp,
  block_number: Type.String({ description: 'in decimal digits' }),
  change: Type.String({
    pattern: '^-?(0|[1-9][0-9]*)$',
    description:
      'what the transfer and its fee added to the balance; negative where they took from it',
  }),
  balance: Type.String({
    pattern: '^-?(0|[1-9][0-9]*)$',
    description: 'after the transfer',
  }),
})

const TransferId = Type.String({
  description:
    'names the movement: the same in lists and notifications, for both ends, and in every block that includes the transaction',
})
const Direction = Type.Enum(transferDirections, {
  description: 'seen from the address or wallet that is asked for, or from the wallet of a webhook',
})
const FeePaid = Type.String({
  pattern: '^(0|[1-9][0-9]*)$',
  description:
    'the part of transaction_fee that this record adds to the costs of its wallet: the whole fee on one record of the payer, else 0',
})
const MessageBytes = Type.String({
  description:
    'the bytes of a message with a NUL, which stands as U+FFFD in message; empty for every other message',
})
const MasterBlock = Type.String({ description: 'the block of the masterchain' })
const MovementDetail = Type.Object(
  {
    source: extension(
      Type.String({ description: 'extrinsic, or system for what the chain did by itself' }),
    ),
    event: extension(Type.String({ description: 'the event of the chain, as Balances.Minted' })),
    pallet: extension(
      Type.String({
        description: 'the pallet that caused it, as the next event of another pallet says',
      }),
    ),
    xcm_message_id: optional(
      extension(
        Type.String({
          description: 'the message from or to another chain, where the block names it',
        }),
      ),
    ),
  },
  {
    description:
      'what the movement was; missing for plain transfers and for records of a fee alone. Such a movement has an empty from or to where that end has no account',
  },
)
const position = 'the place in the block, which orders its transfers; places may be left out'

/** Spec 2.8, and what makes records add up (docs/webhooks.md). */
export const Transfer = record('Transfer', {
  transaction_hash: only('TPC', text),
  transaction_digest: only('S', text),
  asset_type: AssetType,
  nonce: only('C', text),
  from: text,
  to: text,
  value: Decimal,
  transaction_fee: each({ T: Decimal, S: extension(Decimal), P: Decimal, C: Decimal }),
  seq_no: only('T', text),
  workchain: only('T', text),
  shard: only('T', text),
  status: only('TS', text),
  from_user_friendly_address: only('T', text),
  to_user_friendly_address: only('T', text),
  message: only('T', text),
  message_hex: only('T', extension(MessageBytes)),
  transfer_hash: only('T', text),
  transfer_type: only('T', Type.Enum(transferTypes)),
  bounced: only('T', text),
  block_height: only('P', Type.Integer()),
  block_number: each({
    T: extension(MasterBlock),
    S: extension(Type.Integer({ description: 'the checkpoint' })),
    P: extension(Type.Integer({ description: 'the same as block_height' })),
    C: Type.Integer(),
  }),
  block_timestamp: each({
    P: Type.Integer({ description: 'Unix time in seconds' }),
    C: Type.Integer({ description: 'Unix time in seconds' }),
  }),
  transfer_state: only('C', Type.Enum(transferStates)),
  transfer_metadata: only('C', TokenMetadata),
  verified: only(
    'C',
    extension(
      Type.Boolean({
        description:
          'false for an internal transfer that one node reported and neither a second trace nor the balance of the address confirmed',
      }),
    ),
  ),
  token_address: only('TSP', extension(text)),
  detail: only('P', optional(extension(MovementDetail))),
  transfer_id: extension(TransferId),
  wallet_id: extension(text),
  direction: extension(Direction),
  fee_paid: extension(FeePaid),
  transfer_time: extension(Timestamp),
  position: each({
    T: extension(Type.String({ description: `${position}, in decimal digits` })),
    S: extension(Type.Integer({ description: position })),
    P: extension(Type.Integer({ description: position })),
    C: extension(Type.Integer({ description: position })),
  }),
})
