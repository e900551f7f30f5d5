import { sql } from 'kysely'
import type { Db } from './database.ts'
import type { TransactionRow } from './transactions.ts'
import type { WalletScope } from './wallets.ts'

/** An address on a chain, as one organization sees it. */
export type Sender = WalletScope & { from: Buffer }

/**
 * Lets an organization give out one nonce of an address at a time, in all processes. Organizations
 * do not exclude each other: what another one merely creates holds no nonce.
 */
export const lockSender = async (trx: Db, sender: Sender): Promise<void> => {
  const { organization_id, chain_id, from } = sender
  const name = `sender/${organization_id}/${chain_id}/${from.toString('hex')}`
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(trx)
}

/**
 * Who holds nonces: every transaction that was signed, whichever organization has it, because it
 * took the key of the address; and those of the own organization that are still to be signed. What
 * others merely created must not keep anybody waiting.
 */
const holds = ({ organization_id }: Sender) => sql<boolean>`
  (transaction_state in ('TRANSACTION_STATE_SIGNED', 'TRANSACTION_STATE_SENDING',
     'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED')
   or (transaction_state = 'TRANSACTION_STATE_CREATED' and organization_id = ${organization_id}))`

/**
 * The lowest nonce from a number on that nobody holds. Those of transactions that ended a moment ago
 * count as held: the number may have been read before they did.
 */
export const findFreeNonce = async (
  trx: Db,
  sender: Sender,
  { from, endedAfter }: { from: number; endedAfter: Date },
): Promise<number> => {
  const { rows } = await sql<{ nonce: number }>`
    with held as (
      select nonce from managed_transaction
      where chain_id = ${sender.chain_id} and "from" = ${sender.from} and nonce >= ${from}
        and (transaction_state in ('TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED',
          'TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED'))
        and ${holds(sender)}
      union
      select nonce from managed_transaction
      where chain_id = ${sender.chain_id} and "from" = ${sender.from} and nonce >= ${from}
        and update_time > ${endedAfter}
        and transaction_state in ('TRANSACTION_STATE_CONFIRMED', 'TRANSACTION_STATE_REVERTED',
          'TRANSACTION_STATE_REPLACED'))
    select min(free.nonce) as nonce from (
      select ${from}::int8 as nonce union select nonce + 1 from held) free
    where not exists (select from held where held.nonce = free.nonce)`.execute(trx)
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
    where chain_id = ${sender.chain_id} and "from" = ${sender.from} and nonce = ${nonce}
      and (transaction_state in ('TRANSACTION_STATE_CREATED', 'TRANSACTION_STATE_SIGNED',
        'TRANSACTION_STATE_SENDING', 'TRANSACTION_STATE_SENT', 'TRANSACTION_STATE_MINED'))
      and ${holds(sender)}
    order by gas_price desc`.execute(trx)
  return rows
}
