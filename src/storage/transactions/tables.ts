import type { TransactionState } from '../../contract/records/states.ts'
import {
  amount,
  bool,
  bytea,
  int2,
  int4,
  int8,
  jsonb,
  nullable,
  oneOf,
  sum,
  text,
  timestamptz,
  uuid,
} from '../pg/columns.ts'

/** The tables of 0007-transactions.sql. */
export const transactionTables = {
  managed_transaction: {
    organization_id: uuid,
    transaction_id: text,
    network_id: int2,
    wallet_id: uuid,
    transaction_state: oneOf<TransactionState>(),
    from: bytea,
    to: bytea,
    // Of up to 256 bits, so that no integer type of the server can hold them.
    value: amount,
    gas: amount,
    gas_price: amount,
    data: bytea,
    nonce: int8,
    eip155_chain_id: amount,
    // Of the request before defaults: distinguishes a repeated request from a conflicting one.
    request_hash: bytea,
    // Erased when the transaction is canceled: bytes that are not stored cannot be sent.
    signature: nullable(bytea),
    raw_transaction: nullable(bytea),
    transaction_hash: nullable(bytea),
    last_error: nullable(text),
    replaced_by: nullable(bytea),
    sent_time: nullable(timestamptz),
    broadcast_time: nullable(timestamptz),
    block_number: nullable(int8),
    block_hash: nullable(bytea),
    receipt_status: nullable(int2),
    create_time: timestamptz,
    update_time: timestamptz,
    // Grows before each broadcast, so that only the result of the newest one is stored.
    broadcast_count: int4,
    // A broadcast may have reached a node: a refusal by others does not prove that none has it.
    is_unsure: bool,
    next_broadcast_time: nullable(timestamptz),
    replaced_block_number: nullable(int8),
    warnings: nullable(jsonb),
    // Of 0029-due-block.sql.
    due_block: nullable(int8),
  },
  // Of 0023-sending-claims.sql: the addresses that a sender works on.
  sending_claim: { network_id: int2, from: bytea, holder: uuid, expire_time: timestamptz },
  // Of 0025-open-transactions.sql: bounds of what is open, of an organization and of an address.
  open_transaction_use: {
    organization_id: uuid,
    reserved: int8,
    generation: int8,
    count_time: timestamptz,
  },
  sender_nonce: {
    organization_id: uuid,
    network_id: int2,
    from: bytea,
    base_nonce: int8,
    next_nonce: int8,
    open_count: int8,
    open_cost: sum,
    count_time: timestamptz,
    scan_time: timestamptz,
  },
  // What nodes reported for Q; the number of rows is bounded.
  pending_transaction: {
    network_id: int2,
    transaction_hash: bytea,
    from: bytea,
    nonce: int8,
    detail: jsonb,
    record_time: timestamptz,
    // Kept for a day after it left the pool, for clients that ask late.
    leave_time: nullable(timestamptz),
    check_time: nullable(timestamptz),
  },
}
