import type { BlockRef, WalletService } from '../chains/chain.ts'
import { notificationTypes } from '../contract/states.ts'
import { dueBlockOf } from '../domain/wallets/transfer-view.ts'
import { keyOf } from '../lib/bytes.ts'
import { hashId } from '../lib/hash-id.ts'
import type { BulkRow } from '../storage/bulk.ts'
import type { Db } from '../storage/database.ts'
import { findTakenBack, findWebhooks, insertWaiting } from '../storage/notifications.ts'

type Scene = { chain_id: number; service: WalletService; now: Date }

/** What a notification is about: one transaction, seen by one organization's wallets. */
type Event = Pick<
  BulkRow<'transfer'>,
  'organization_id' | 'wallet_id' | 'transaction_hash' | 'block_number'
>

/** One waiting notification per webhook and transaction, whatever the number of its transfers. */
export async function noteTransfers(
  trx: Db,
  scene: Scene,
  blocks: readonly BlockRef[],
  transfers: readonly Event[],
): Promise<void> {
  if (transfers.length === 0) return
  const hashes = new Map(blocks.map(({ number, hash }) => [number, hash]))
  await insert(trx, scene, transfers, (event) => ({
    block_number: event.block_number,
    // With the hash: a transaction that comes back on another branch is told of anew.
    key: [hashes.get(event.block_number)!, event.transaction_hash],
  }))
}

/** A further notification for records that a later block has changed (T: it bounced). */
export async function noteUpdates(
  trx: Db,
  scene: Scene,
  block: BlockRef,
  updated: readonly Event[],
): Promise<void> {
  if (updated.length === 0) return
  await insert(trx, scene, updated, ({ transaction_hash }) => ({
    block_number: block.number,
    key: ['update', block.hash, transaction_hash],
  }))
}

/**
 * A further notification for records of blocks that were missed when they were new. It holds those
 * only: the rest of the transaction may have been told of before.
 */
export async function noteBackfilled(
  trx: Db,
  scene: Scene,
  blocks: readonly BlockRef[],
  added: readonly (Event & { ordinal: number })[],
): Promise<void> {
  if (added.length === 0) return
  const hashes = new Map(blocks.map(({ number, hash }) => [number, hash]))
  const nameOf = ({ block_number, transaction_hash, organization_id }: Event) =>
    `${organization_id}/${block_number}/${keyOf(transaction_hash)}`
  const places = Map.groupBy(added, nameOf)
  const ordinalsOf = (event: Event): number[] =>
    [...new Set(places.get(nameOf(event))!.map(({ ordinal }) => ordinal))].sort((a, b) => a - b)
  await insert(trx, scene, added, (event) => ({
    block_number: event.block_number,
    key: [
      'backfilled',
      hashes.get(event.block_number)!,
      event.transaction_hash,
      ordinalsOf(event).join(),
    ],
    data: { backfilled: ordinalsOf(event) },
  }))
}

type Waiting = Omit<Parameters<typeof insertWaiting>[1][number], 'webhook_history_id'> & {
  key: (string | Buffer)[]
}

async function insert(
  trx: Db,
  { chain_id, service, now }: Scene,
  events: readonly Event[],
  describe: (event: Event) => { block_number: number; key: (string | Buffer)[]; data?: object },
): Promise<void> {
  const webhooksOf = await findWebhooks(trx, chain_id, events, 'WEBHOOK_EVENT_TRANSFER')
  const rows = new Map<string, Waiting>()
  for (const event of events) {
    const webhooks = webhooksOf(event)
    if (webhooks.length === 0) continue
    const { block_number, key, data } = describe(event)
    const known = key.map((part) => (typeof part === 'string' ? part : keyOf(part))).join()
    for (const { webhook_id, confirmation } of webhooks) {
      if (rows.has(`${webhook_id}/${known}`)) continue
      rows.set(`${webhook_id}/${known}`, {
        key,
        organization_id: event.organization_id,
        chain_id,
        webhook_id,
        notification_type: notificationTypes[service],
        // What the body is made of once it is due.
        data: { block_number: event.block_number, ...data },
        transaction_hash: event.transaction_hash,
        block_number,
        due_block: dueBlockOf(block_number, confirmation),
        create_time: now,
      })
    }
  }
  await insertGenerations(trx, [...rows.values()])
}

/**
 * Stores each notification once. Where a reorganization has taken one back and the block has returned,
 * it is stored anew under the id of the next generation: receivers drop what has an id that they know.
 */
async function insertGenerations(trx: Db, waiting: readonly Waiting[]): Promise<void> {
  let left = waiting
  for (let generation = 0; left.length > 0; generation++) {
    const rows = left.map(({ key, ...row }) => ({
      ...row,
      webhook_history_id: hashId(
        'notification',
        row.webhook_id,
        ...key,
        ...(generation > 0 ? [generation] : []),
      ),
    }))
    if ((await insertWaiting(trx, rows)) === rows.length) return
    const gone = await findTakenBack(
      trx,
      rows.map((row) => row.webhook_history_id),
    )
    left = left.filter((_, at) => gone.has(rows[at]!.webhook_history_id))
  }
}
