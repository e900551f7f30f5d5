import type { AssetType, ContractType } from '../../contract/records/assets.ts'
import type { TransferState } from '../../contract/records/states.ts'
import type { ContractMetadata } from '../../contract/records/token.ts'
import {
  amount,
  bool,
  bytea,
  byteas,
  int2,
  int4,
  int8,
  jsonb,
  jsonOf,
  nullable,
  oneOf,
  type RowOf,
  text,
  timestamptz,
  uuid,
  uuids,
} from '../pg/columns.ts'

/** The organization and the network of wallets. */
export type WalletScope = { organization_id: string; network_id: number }

/** The tables of 0003-wallets.sql, 0004-balances.sql, 0005-transfers.sql and 0008-tracking.sql. */
export const walletTables = {
  // A removed wallet keeps its row: its transfers and transactions stay readable.
  wallet: {
    wallet_id: uuid,
    organization_id: uuid,
    network_id: int2,
    name: text,
    confirmation: int8,
    // Up to this block everything stays confirmed, although UpdateConfirmation has raised the confirmation
    // since.
    confirmed_block: nullable(int8),
    remove_time: nullable(timestamptz),
    create_time: timestamptz,
    update_time: timestamptz,
    // Stored: counting a million rows for each response took most of a second.
    address_count: int8,
  },
  // The key begins with network and address, so that one look-up finds the tracked addresses of a block.
  wallet_address: {
    network_id: int2,
    address: bytea,
    organization_id: uuid,
    wallet_id: uuid,
    create_time: timestamptz,
  },
  // The id is a hash of chain, type, contract and token id: the tracker computes it without a look-up.
  asset: {
    asset_id: uuid,
    network_id: int2,
    asset_type: oneOf<AssetType>(),
    contract_address: bytea,
    token_id: amount,
    name: nullable(text),
    symbol: nullable(text),
    decimals: nullable(int2),
    token_uri: nullable(text),
    token_data: nullable(text),
    metadata_time: nullable(timestamptz),
    create_time: timestamptz,
  },
  // A token that is tracked at one address (T, S).
  token_import: {
    network_id: int2,
    address: bytea,
    asset_id: uuid,
    organization_id: uuid,
    wallet_id: uuid,
    token_address: bytea,
    token_account_address: bytea,
    // Set where a rule tracks the token: the token account (T) is found later than the rule was made, and the
    // blocks in between are read again. Null for a token that was imported by name.
    since_block: nullable(int8),
    create_time: timestamptz,
  },
  // A token of all addresses of a wallet or, without one, of the organization, also of later ones.
  token_rule: {
    rule_id: uuid,
    organization_id: uuid,
    network_id: int2,
    wallet_id: nullable(uuid),
    asset_id: uuid,
    create_time: timestamptz,
  },
  balance: {
    wallet_id: uuid,
    address: bytea,
    asset_id: uuid,
    organization_id: uuid,
    asset_type: oneOf<AssetType>(),
    contract_address: bytea,
    balance: amount,
    as_of_block: int8,
    // Set while the contract fails: `balance` is then the last one that could be read.
    unreadable_block: nullable(int8),
    // Its block was taken back: shown until it is read again, and no baseline for net changes.
    is_stale: nullable(bool),
    create_time: timestamptz,
    // The place in the batch that created it. Lists go by time and place, so that indexes grow at their end.
    position: int4,
    update_time: timestamptz,
  },
  // Work: with `delta` (S) it is added, without it the balance is read at the block.
  balance_change: {
    wallet_id: uuid,
    address: bytea,
    asset_id: uuid,
    block_number: int8,
    organization_id: uuid,
    network_id: int2,
    due_block: int8,
    delta: nullable(amount),
    // Read at the newest block before it is confirmed: nodes keep the states of 128 blocks only.
    ahead: nullable(bool),
    // Stands for earlier blocks too: their reading was taken back.
    is_reread: nullable(bool),
  },
  // What was read ahead, until its block has the confirmation of the wallet.
  balance_pending: {
    wallet_id: uuid,
    address: bytea,
    asset_id: uuid,
    block_number: int8,
    organization_id: uuid,
    network_id: int2,
    asset_type: oneOf<AssetType>(),
    contract_address: bytea,
    balance: amount,
    since_block: int8,
    due_block: int8,
  },
  // How far the comparison of all balances with the chain is; it continues here after a restart.
  balance_round: {
    network_id: int2,
    begin_time: timestamptz,
    // Counted at the beginning, those that may be missing included; and how many of them were passed.
    balance_count: int8,
    passed_count: nullable(int8),
    // Chooses which tokens are looked for that have no balance. Null where an earlier version began the round.
    round_number: nullable(int8),
    looks_for_missing: nullable(bool),
    wallet_id: nullable(uuid),
    address: nullable(bytea),
    asset_id: nullable(uuid),
  },
  balance_difference: {
    difference_id: uuid,
    organization_id: uuid,
    network_id: int2,
    wallet_id: uuid,
    address: bytea,
    asset_id: uuid,
    expected: amount,
    found: nullable(amount),
    block_number: int8,
    reason: text,
    create_time: timestamptz,
  },
  // After a gap all balances of a network are read again, page by page: one statement would time out.
  balance_reopening: {
    network_id: int2,
    block_number: int8,
    // Balances of later blocks are first lowered to this one, because those blocks left the chain.
    lower_to: nullable(int8),
    // When the first gap asked for it; null where none did.
    gap_time: nullable(timestamptz),
    // Only in positions of an earlier version, which walked in another order.
    wallet_id: nullable(uuid),
    address: nullable(bytea),
    address_organization_id: nullable(uuid),
    asset_id: nullable(uuid),
  },
  // Balance work of a batch of blocks in one row. Far behind the head, a row per balance was a third of the
  // database's work.
  balance_backlog: {
    network_id: int2,
    backlog_id: uuid,
    due_block: int8,
    pair_count: int4,
    work: jsonb,
  },
  // Which balances were read at blocks that can still leave the chain; they are read again then.
  balance_reading: {
    network_id: int2,
    block_number: int8,
    reading_id: uuid,
    wallet_ids: uuids,
    addresses: byteas,
    asset_ids: uuids,
  },
  // Recent blocks: the parent of a new block is compared with them.
  block: {
    network_id: int2,
    block_number: int8,
    block_hash: bytea,
    parent_hash: bytea,
    block_time: timestamptz,
  },
  tracker_cursor: {
    network_id: int2,
    name: text,
    block_number: int8,
    block_hash: bytea,
    detail: nullable(jsonb),
    update_time: timestamptz,
  },
  // Blocks that no node could serve. They are shown and retried, never skipped silently.
  tracker_gap: {
    network_id: int2,
    from_block: int8,
    to_block: int8,
    reason: text,
    create_time: timestamptz,
    close_time: nullable(timestamptz),
    attempts: int4,
    next_time: nullable(timestamptz),
    reopen_time: nullable(timestamptz),
  },
  // One row per movement, tracked address and side. Partitioned by month.
  transfer: {
    wallet_id: uuid,
    block_time: timestamptz,
    block_number: int8,
    // Does not depend on what is tracked, so that storing a block again changes nothing.
    ordinal: int8,
    side: int2,
    organization_id: uuid,
    network_id: int2,
    address: bytea,
    transaction_hash: bytea,
    asset_id: uuid,
    from: bytea,
    to: bytea,
    value: amount,
    transaction_fee: amount,
    // A pending transfer is stored as SUCCESS: whether it is confirmed follows from the head when it is read.
    transfer_state: oneOf<TransferState>(),
    transfer_hash: nullable(bytea),
    external_hash: nullable(bytea),
    detail: nullable(jsonb),
  },
  contract: {
    organization_id: uuid,
    network_id: int2,
    contract_address: bytea,
    contract_type: oneOf<ContractType>(),
    contract_metadata: nullable(jsonOf<NonNullable<ContractMetadata>>()),
    create_time: timestamptz,
  },
}

/** A stored wallet. */
export type WalletRow = RowOf<typeof walletTables.wallet>

/** A stored transfer. */
export type TransferRow = RowOf<typeof walletTables.transfer>

/** A stored token contract. */
export type ContractRow = RowOf<typeof walletTables.contract>
