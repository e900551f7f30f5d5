import { accessTables } from '../access/tables.ts'
import { auditTables } from '../audit/tables.ts'
import { metricTables } from '../metrics/tables.ts'
import { eventTables } from '../tracking/tables.ts'
import { transactionTables } from '../transactions/tables.ts'
import { walletTables } from '../wallets/tables.ts'
import { webhookTables } from '../webhooks/tables.ts'
import type { TableOf } from './columns.ts'

/** Every table and column of the service; `tables.itest.ts` holds it against the real schema. */
export const tables = {
  ...accessTables,
  ...walletTables,
  ...webhookTables,
  ...transactionTables,
  ...eventTables,
  ...auditTables,
  ...metricTables,
}

/** The schema as Kysely sees it. */
export type Tables = { [Name in keyof typeof tables]: TableOf<(typeof tables)[Name]> }
