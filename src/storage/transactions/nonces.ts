// Nonces of managed transactions. There is no counter that could drift: the next nonce follows from the rows and from the
// count of the chain. So a crash leaves no hole, and a transaction that was sent elsewhere is taken into account as soon as
// the nodes count it.

import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from '../wallets/tables.ts'
import type { OpenLock } from './open-use.ts'
import type { TransactionRow } from './transactions.ts'

/** An address on a chain, as one organization sees it. */
export type Sender = WalletScope & { from: Buffer }

/**
 * Lets an organization give out one nonce of an address at a time, in all processes. Organizations
 * do not exclude each other: what another one merely creates holds no nonce.
 */
export const lockSender = async (trx: Db, sender: Sender): Promise<void> =>
  void (await sql`select ${senderLock(sender)}`.execute(trx))

/** The same with a lock of the organization after it: in the other order two that create could wait for each other. */
export const lockSenderAnd = async (trx: Db, sender: Sender, after: OpenLock): Promise<void> =>
  void (await sql`select ${senderLock(sender)}, ${after}`.execute(trx))

const senderLock = ({ organization_id, network_id, from }: Sender) => {
  const name = `sender/${organization_id}/${network_id}/${from.toString('hex')}`
  // An advisory lock: an address without transactions has no row that could be locked.
  return sql`pg_advisory_xact_lock(hashtextextended(${name}, 0))`
}

/**
 * Which transactions hold nonces for an organization: its own, and those that others have signed,
 * because that took the key of the address. The latter only for an organization that has itself shown
 * a signature of the key: anyone may register any address, and a nonce or a price of another
 * organization must not be learned that way.
 */
export const holds = ({ organization_id, network_id, from }: Sender) => sql<boolean>`
  (organization_id = ${organization_id}
   or (transaction_state <> 'TRANSACTION_STATE_CREATED' and (select exists (
     select from managed_transaction
     where organization_id = ${organization_id} and network_id = ${network_id} and "from" = ${from}
       and transaction_hash is not null))))`

/** States in which a nonce is taken. A literal list, so that the partial index matches. */
export const live = sql`(transaction_state in ('TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED',
  'TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED'))`

/** The transactions that hold a nonce, the dearest first. */
export const findHolders = async (
  trx: Db,
  sender: Sender,
  nonce: number,
): Promise<Pick<TransactionRow, 'transaction_id' | 'gas_price' | 'transaction_state'>[]> => {
  const { rows } = await sql<
    Pick<TransactionRow, 'transaction_id' | 'gas_price' | 'transaction_state'>
  >`
    select transaction_id, gas_price, transaction_state from managed_transaction
    where network_id = ${sender.network_id} and "from" = ${sender.from} and nonce = ${nonce}
      and ${live} and ${holds(sender)}
    order by gas_price desc`.execute(trx)
  return rows
}

/** A transaction that holds a nonce. */
export type NonceHolder = Pick<
  TransactionRow,
  'transaction_id' | 'transaction_state' | 'last_error'
>

/** The transaction of an organization that holds a nonce; one that is on its way first. */
export const findOwnHolder = async (
  db: Db,
  { organization_id, network_id, from }: Sender,
  nonce: number,
): Promise<NonceHolder | undefined> => {
  // A transaction that is sent explains the wait better than one that waits itself.
  const { rows } = await sql<NonceHolder>`
    select transaction_id, transaction_state, last_error from managed_transaction
    where network_id = ${network_id} and "from" = ${from} and nonce = ${nonce} and ${live}
      and organization_id = ${organization_id}
    order by transaction_state in ('TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED'),
      create_time limit 1`.execute(db)
  return rows[0]
}

// A node keeps fewer than these of an address in its pool.
const nearestBelow = 64

/** Whether one of the nearest lower nonces of the address is that of a transaction that was never sent. */
export const hasUnsentBelow = async (
  db: Db,
  { organization_id, network_id, from }: Sender,
  nonce: number,
): Promise<boolean> => {
  // Of the nearest only: up to 1,000 are open, and each that is sent would read all of them.
  const { rows } = await sql`
    select from (
      select transaction_state from managed_transaction
      where network_id = ${network_id} and "from" = ${from} and nonce < ${nonce} and ${live}
        and organization_id = ${organization_id}
      order by nonce desc limit ${nearestBelow}) below
    where transaction_state in ('TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED')
    limit 1`.execute(db)
  return rows.length > 0
}
