// The nodes and the gateway as each process sees them. A process writes its row when another one announces that it lists
// them (`app/process-reports.ts`), at most once a second, so nothing is written while no one asks.

import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import type { NetworkName } from '../tracking/networks.ts'

/** A network of the gateway with its counts. */
export type GatewayCounts = NetworkName & {
  websocket_count: number
  subscription_count: number
  filter_count: number
  cache_bytes: number
  cache_hit_count: number
  cache_miss_count: number
}

/** What one process reports; its nodes in the form of the caller. */
export type GatewayReport<Nodes> = { nodes: Nodes; gateways: readonly GatewayCounts[] }

/** Rows of processes that were killed are removed after this time. */
const oldMinutes = 10

/** Replaces the row of a process. */
export const reportGateway = async (
  db: Db,
  holder: string,
  { nodes, gateways }: GatewayReport<unknown>,
): Promise<void> => {
  await sql`
    delete from gateway_report where holder in (
      select holder from gateway_report
      where report_time < clock_timestamp() - make_interval(mins => ${oldMinutes}) and holder <> ${holder}
      for update skip locked)`.execute(db)
  await sql`
    insert into gateway_report values (
      ${holder}, clock_timestamp(), ${JSON.stringify(nodes)}::text::jsonb, ${JSON.stringify(gateways)}::text::jsonb)
    on conflict (holder) do update set
      report_time = excluded.report_time, nodes = excluded.nodes, gateways = excluded.gateways`.execute(
    db,
  )
}

/** What other processes reported since a time. */
export const listGatewayReports = async <Nodes>(
  db: Db,
  { since, except }: { since: Date; except: string },
): Promise<GatewayReport<Nodes>[]> => {
  const { rows } = await sql<GatewayReport<Nodes>>`
    select nodes, gateways from gateway_report
    where report_time >= ${since} and holder <> ${except} order by holder limit 256`.execute(db)
  return rows
}
