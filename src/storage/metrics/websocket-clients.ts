// The open WebSockets of all processes. Each process writes its own rows when it is asked to, so that nothing is
// written while no one looks.

import { sql } from 'kysely'
import { bulkRows } from '../pg/bulk.ts'
import type { RowOf } from '../pg/columns.ts'
import type { Db } from '../pg/database.ts'
import type { metricTables } from './tables.ts'

/** An open WebSocket. */
export type WebSocketClient = Omit<
  RowOf<typeof metricTables.websocket_client>,
  'holder' | 'report_time'
>

/** Rows of processes that were killed are removed after this time. */
const oldMinutes = 10

/** Replaces the rows of a process by those of now, of one organization or of all. */
export const reportWebSockets = async (
  db: Db,
  { holder, organization_id }: { holder: string; organization_id: string | null },
  clients: readonly WebSocketClient[],
): Promise<void> => {
  await db.transaction().execute(async (trx) => {
    await sql`
      delete from websocket_client where holder = ${holder}
        and (${organization_id}::uuid is null or organization_id = ${organization_id})`.execute(trx)
    await sql`
      delete from websocket_client where (holder, client_number) in (
        select holder, client_number from websocket_client
        where report_time < clock_timestamp() - make_interval(mins => ${oldMinutes})
        for update skip locked)`.execute(trx)
    if (clients.length === 0) return
    await sql`
      insert into websocket_client
      select ${holder}::uuid, client_number, clock_timestamp(), organization_id, credential_id, chain,
        network, client, open_time, subscriptions, buffered_bytes
      from json_populate_recordset(null::websocket_client, ${bulkRows(clients)}::text::json)`.execute(
      trx,
    )
  })
}

/** The WebSockets that other processes reported since a time, of one organization or of all; the oldest first. */
export const listWebSockets = async (
  db: Db,
  filter: { organization_id: string | undefined; except: string; since: Date; limit: number },
): Promise<WebSocketClient[]> => {
  const { organization_id = null, except, since, limit } = filter
  const { rows } = await sql<WebSocketClient>`
    select client_number, organization_id, credential_id, chain, network, client, open_time, subscriptions,
      buffered_bytes
    from websocket_client
    where report_time >= ${since} and holder <> ${except}
      and (${organization_id}::uuid is null or organization_id = ${organization_id})
    order by open_time, holder, client_number limit ${limit}`.execute(db)
  return rows
}
