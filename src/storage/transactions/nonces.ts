// Nonces of managed transactions. There is no counter that could drift: the next nonce follows from the rows and from the
// count of the chain. So a crash leaves no hole, and a transaction that was sent elsewhere is taken into account as soon as
// the nodes count it.

import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import type { WalletScope } from '../wallets/tables.ts'
import type { TransactionRow } from './transactions.ts'

/** An address on a chain, as one organization sees it. */
export type Sender = WalletScope & { from: Buffer }

/**
 * Lets an organization give out one nonce of an address at a time, in all processes. Organizations
 * do not exclude each other: what another one merely creates holds no nonce.
 */
export const lockSender = async (trx: Db, sender: Sender): Promise<void> => {
  const { organization_id, network_id, from } = sender
  const name = `sender/${organization_id}/${network_id}/${from.toString('hex')}`
  // An advisory lock: an address without transactions has no row that could be locked.
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(trx)
}

/**
 * Which transactions hold nonces for an organization: its own, and those that others have signed,
 * because that took the key of the address. The latter only for an organization that has itself shown
 * a signature of the key: anyone may register any address, and a nonce or a price of another
 * organization must not be learned that way.
 */
const holds = ({ organization_id, network_id, from }: Sender) => sql<boolean>`
  (organization_id = ${organization_id}
   or (transaction_state <> 'TRANSACTION_STATE_CREATED' and (select exists (
     select from managed_transaction
     where organization_id = ${organization_id} and network_id = ${network_id} and "from" = ${from}
       and transaction_hash is not null))))`

// States in which a nonce is taken. A literal list, so that the partial index matches.
const live = sql`(transaction_state in ('TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED',
  'TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED'))`

/**
 * The lowest nonce from a number on that no transaction holds: in their order the held ones equal the numbers from
 * there on up to the first gap. Those of transactions that ended on the chain count as held, too: where the nodes say
 * that such a nonce is free, the number was read before the transaction ended, or a reorganization is about to bring
 * it back.
 */
const freeNonce = (sender: Sender, from: number) => sql<number>`
  (select ${from}::int8 + count(*) filter (where nonce = ${from}::int8 + place - 1) from (
    select nonce, row_number() over (order by nonce) as place from (
      select distinct nonce from managed_transaction
      where network_id = ${sender.network_id} and "from" = ${sender.from} and nonce >= ${from}
        and transaction_state <> 'TRANSACTION_STATE_CANCELED' and ${holds(sender)}) held) placed)`

/** The lowest free nonce of an address. */
export const findFreeNonce = async (trx: Db, sender: Sender, from: number): Promise<number> => {
  // Gaps are filled first: the lowest free number is one that follows a held one, or the first.
  const { rows } = await sql<{ nonce: number }>`
    select ${freeNonce(sender, from)} as nonce`.execute(trx)
  return rows[0]!.nonce
}

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

/** How many transactions an organization has open at an address, and what those not mined may spend. */
export type OpenSums = { count: number; cost: bigint }

const openSums = (
  { organization_id, network_id, from }: Sender,
  { exceptNonce, beside }: { exceptNonce?: number; beside?: RawBuilder<unknown> },
) => sql<OpenSums>`
  select ${beside ? sql`${beside} as nonce,` : sql``} count(*) as count,
    coalesce(sum(value + gas * gas_price) filter (where transaction_state <> 'TRANSACTION_STATE_MINED'
      ${exceptNonce === undefined ? sql`` : sql`and nonce <> ${exceptNonce}`}), 0) as cost
  from managed_transaction
  where network_id = ${network_id} and "from" = ${from} and ${live}
    and organization_id = ${organization_id}`

/** The same without what a transaction with the nonce replaces. */
export const sumOpen = async (
  trx: Db,
  sender: Sender,
  { exceptNonce }: { exceptNonce: number },
): Promise<OpenSums> => (await openSums(sender, { exceptNonce }).execute(trx)).rows[0]!

/** The lowest free nonce and the sums in one statement. */
export const findNext = async (
  trx: Db,
  sender: Sender,
  from: number,
): Promise<OpenSums & { nonce: number }> => {
  const { rows } = await openSums(sender, { beside: freeNonce(sender, from) }).execute(trx)
  return rows[0] as OpenSums & { nonce: number }
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

/** Whether an organization has a transaction of the address with a lower nonce that was never sent. */
export const hasUnsentBelow = async (
  db: Db,
  { organization_id, network_id, from }: Sender,
  nonce: number,
): Promise<boolean> => {
  const { rows } = await sql`
    select from managed_transaction
    where network_id = ${network_id} and "from" = ${from} and nonce < ${nonce} and ${live}
      and organization_id = ${organization_id}
      and transaction_state in ('TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED')
    limit 1`.execute(db)
  return rows.length > 0
}
