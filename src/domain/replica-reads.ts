import { accessOf } from '../contract/access.ts'
import type { Entry } from '../contract/operations/catalogue.ts'
import type { Db } from '../storage/pg/database.ts'
import type { Context } from './context.ts'

/** Lists that may be a second old. Single records, balances and what clients poll for a change come from the primary. */
const lists: ReadonlySet<string> = new Set([
  'ListAddresses',
  'ListAssets',
  'ListAuditEvents',
  'ListContracts',
  'ListOrganizations',
  'ListTransfers',
  'ListWallets',
  'ListWebhookAttempts',
  'ListWebhookHistories',
  'ListWebhooks',
])

/** Performs an operation on a replica where it may be a second old, and notes what other operations have written. */
export const performWithReplicas = <answer>(
  { name }: Pick<Entry, 'name'>,
  context: Context,
  perform: (context: Context) => Promise<answer>,
): Promise<answer> => {
  const { replicas } = context
  return replicas ? performOn(replicas, name, context, perform) : perform(context)
}

async function performOn<answer>(
  replicas: NonNullable<Context['replicas']>,
  name: Entry['name'],
  context: Context,
  perform: (context: Context) => Promise<answer>,
): Promise<answer> {
  const { principal, db, log } = context
  const { organization_id } = principal
  if (lists.has(name))
    return await replicas.read(organization_id, db, (chosen: Db) =>
      perform({ ...context, db: chosen }),
    )
  try {
    return await perform(context)
  } finally {
    // Also after a failure: the transaction may have been committed.
    if (accessOf({ name }) === 'write')
      await replicas.wrote(organization_id).catch((error: unknown) => {
        log.warn({ err: error }, 'a write was not noted: lists may miss it for a second')
      })
  }
}
