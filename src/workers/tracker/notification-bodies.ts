import type { Family } from '../../chains/chain.ts'
import {
  confirmationsOf,
  dueBlockOf,
  presentTransfer,
  type TransferRecord,
} from '../../domain/wallets/transfer-view.ts'
import { keyOf } from '../../lib/bytes.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { ListedTransfer } from '../../storage/transfers/transfers.ts'
import type { WaitingNotification } from '../../storage/webhooks/due-notifications.ts'
import {
  countPendingTransfers,
  listNotifiedTransfers,
  listTransactionPlaces,
  listTransactionShares,
  measureTransactionShares,
  type TransactionShares,
} from '../../storage/webhooks/notified-transfers.ts'

/** The transfers that one notification holds at most; the others are listed by ListTransfers. */
export const mostRecords = 1_000
// With the envelope below what receivers usually take: nginx and most brokers stop at 1 MiB.
const mostBytes = 1_000_000
/** The bodies of one database transaction have so many bytes together; one alone may have more. */
export const mostPageBytes = 8 * mostBytes
// A movement has one row for each of its ends: so many rows hold one record more than are shown, and texts of twice as many
// bytes as a body those of records that are longer than it. Such a body has no texts, so that the others need not be read.
const ofBody = { rows: 2 * mostRecords + 1, bytes: 2 * mostBytes }

/** What one database transaction releases at most, in transfers of all notifications together. */
type Due = { network_id: number; chain: Family; head: number; limit: number }

/** What a notification says, and what of it waits for a wallet. */
type Body = {
  data: { confirmations: number; transfers: TransferRecord[] }
  /** How many transfers are pending, and the first block at which one of them is confirmed. */
  pending: { count: number; due_block: number }
}

/** A notification with its body. */
export type Notification = Body & { delivery: WaitingNotification }

/** As many of the notifications with their bodies as one transaction may release, at least one, in the order of the chain. */
export async function readBodies(
  trx: Db,
  due: Due,
  waiting: readonly WaitingNotification[],
): Promise<Notification[]> {
  const { some, transfers } = await readTransfers(trx, due, waiting)
  const found = Map.groupBy(transfers, (row) =>
    nameOf(row.organization_id, row.block_number, row.transaction_hash),
  )
  // Once for all webhooks that see the same.
  const seen = new Map<string, Content>()
  const page: (Notification & { ordinal: number })[] = []
  const sum = { records: 0, bytes: 0 }
  for (const delivery of some) {
    const name = sightOf(delivery)
    if (!seen.has(name))
      seen.set(
        name,
        await readContent(trx, due, delivery, found.get(transactionOf(delivery)) ?? []),
      )
    const content = seen.get(name)!
    sum.records += content.records.length
    sum.bytes += content.bytes
    if (page.length > 0 && (sum.records > due.limit || sum.bytes > mostPageBytes)) break
    page.push({ ...toNotification(delivery, content, due), ordinal: content.ordinal })
  }
  return page.sort(
    (a, b) => a.delivery.block_number - b.delivery.block_number || a.ordinal - b.ordinal,
  )
}

/** These in the order in which they are released together: that of the chain. */
export async function inChainOrder(
  trx: Db,
  network_id: number,
  waiting: readonly WaitingNotification[],
): Promise<WaitingNotification[]> {
  const places = await listTransactionPlaces(trx, network_id, waiting)
  const ordinals = new Map(
    places.map(({ organization_id, transfer_block, transaction_hash, ordinal }) => [
      nameOf(organization_id, transfer_block, transaction_hash),
      ordinal,
    ]),
  )
  const ordinalOf = (one: WaitingNotification) => ordinals.get(transactionOf(one)) ?? 0
  return waiting.toSorted((a, b) => a.block_number - b.block_number || ordinalOf(a) - ordinalOf(b))
}

const nameOf = (organization_id: string, block_number: number, transaction_hash: Buffer): string =>
  `${organization_id}/${block_number}/${keyOf(transaction_hash)}`

const transactionOf = (delivery: WaitingNotification): string =>
  nameOf(delivery.organization_id, delivery.transfer_block, delivery.transaction_hash)

/** Equal for notifications of the same transfers. */
const sightOf = (delivery: WaitingNotification): string =>
  `${delivery.wallet_id}/${delivery.backfilled}/${transactionOf(delivery)}`

/** The transfers of the first notifications, of as many as have no more transfers and texts together than the limits. */
async function readTransfers(
  trx: Db,
  { network_id, limit }: Due,
  waiting: readonly WaitingNotification[],
): Promise<{ some: readonly WaitingNotification[]; transfers: ListedTransfer[] }> {
  let some = waiting
  for (;;) {
    const bounds = { rows: limit, bytes: mostPageBytes }
    const transfers = await listNotifiedTransfers(trx, network_id, some, bounds)
    if (transfers.length < limit && !transfers.some((row) => row.is_beyond))
      return { some, transfers }
    const [first] = some
    const mine = some.filter((one) => isAlike(one, first!))
    // A transaction alone has more: of it only what is shown.
    if (mine.length === some.length) return await readShares(trx, { network_id, limit }, mine)
    // A transaction can hold any number of transfers, so that only reading shows how many fit.
    const half = some.slice(0, Math.ceil(some.length / 2))
    some = half.every((one) => isAlike(one, first!)) ? mine : half
  }
}

/** The same for notifications of one transaction that has more: of each only what is shown. */
async function readShares(
  trx: Db,
  { network_id, limit }: Pick<Due, 'network_id' | 'limit'>,
  mine: readonly WaitingNotification[],
): Promise<{ some: readonly WaitingNotification[]; transfers: ListedTransfer[] }> {
  const [first] = mine
  const shares = sharesFor(mine)
  // Many wallets of one transaction are measured first: each of them may have as much as a body.
  const sizes =
    new Set(mine.map(sightOf)).size > 1
      ? await measureTransactionShares(trx, network_id, first!, shares, ofBody)
      : undefined
  const seen = new Set<string>()
  const sum = { rows: 0, bytes: 0 }
  const end = mine.findIndex((delivery) => {
    const sight = sightOf(delivery)
    if (!sizes || seen.has(sight)) return false
    const size = delivery.wallet_id === null ? ofBody : sizes.get(delivery.wallet_id)
    sum.rows += size?.rows ?? 0
    sum.bytes += size?.bytes ?? 0
    const isBeyond = seen.size > 0 && (sum.rows > limit || sum.bytes > mostPageBytes)
    seen.add(sight)
    return isBeyond
  })
  const some = end < 0 ? mine : mine.slice(0, end)
  const shown = await listTransactionShares(trx, network_id, first!, sharesFor(some), ofBody)
  return { some, transfers: shown }
}

const sharesFor = (mine: readonly WaitingNotification[]): TransactionShares => ({
  isWhole: mine.some(({ wallet_id }) => wallet_id === null),
  wallet_ids: [...new Set(mine.flatMap(({ wallet_id }) => wallet_id ?? []))],
  ordinals: mine[0]!.backfilled,
})

const isAlike = (a: WaitingNotification, b: WaitingNotification): boolean =>
  transactionOf(a) === transactionOf(b) && `${a.backfilled}` === `${b.backfilled}`

type Content = {
  records: TransferRecord[]
  bytes: number
  isCut: boolean
  ordinal: number
  pending: Body['pending']
}

async function readContent(
  trx: Db,
  { network_id, chain, head }: Due,
  delivery: WaitingNotification,
  transfers: readonly ListedTransfer[],
): Promise<Content> {
  const all = transfersOf(delivery, transfers)
  const rows = all.slice(0, mostRecords)
  const { records, bytes } = presentWithin(rows, (row) => presentTransfer(chain, row, head))
  const isCut = records.length < all.length
  const isShown = records[0]?.transfer_state !== undefined
  return {
    ...{ records, bytes, isCut },
    ordinal: all[0]?.ordinal ?? 0,
    pending:
      // What is left out must be followed up as well.
      isCut && isShown
        ? await countPendingTransfers(trx, network_id, delivery, head)
        : // Only where the record shows it: in other variants a second notification would contain nothing new.
          pendingOf(rows.filter((_, at) => isPending(records[at]))),
  }
}

const isPending = (record: TransferRecord | undefined): boolean =>
  record?.transfer_state === 'TRANSFER_STATE_PENDING'

const pendingOf = (rows: readonly ListedTransfer[]): Body['pending'] => ({
  count: rows.length,
  due_block: rows.reduce(
    (first, row) => Math.min(first, dueBlockOf(row.block_number, row.confirmation)),
    Number.MAX_SAFE_INTEGER,
  ),
})

/** As many records as fit into a body: first without the descriptions of items, then without the last transfers. */
function presentWithin(
  rows: readonly ListedTransfer[],
  present: (row: ListedTransfer) => TransferRecord,
): { records: TransferRecord[]; bytes: number } {
  const whole = fitting(rows.map(present))
  return whole.records.length === rows.length
    ? whole
    : fitting(rows.map((row) => present(withoutTexts(row))))
}

function fitting(records: TransferRecord[]): { records: TransferRecord[]; bytes: number } {
  let bytes = 0
  for (const [at, record] of records.entries()) {
    const length = Buffer.byteLength(JSON.stringify(record))
    if (at > 0 && bytes + length > mostBytes) return { records: records.slice(0, at), bytes }
    bytes += length
  }
  return { records, bytes }
}

const withoutTexts = (row: ListedTransfer): ListedTransfer => ({
  ...row,
  token_uri: null,
  token_data: null,
  token_uri_omitted: row.token_uri_omitted === true || Boolean(row.token_uri),
  token_data_omitted: row.token_data_omitted === true || Boolean(row.token_data),
})

/** The transfers that a notification is about: of its wallets, each movement once per wallet. */
function transfersOf(
  { wallet_id, backfilled }: WaitingNotification,
  transfers: readonly ListedTransfer[],
): ListedTransfer[] {
  const places = backfilled && new Set(backfilled)
  const movements = new Map<string, ListedTransfer>()
  for (const row of transfers) {
    const mine =
      (wallet_id === null || wallet_id === row.wallet_id) && (places?.has(row.ordinal) ?? true)
    if (!mine) continue
    const key = `${row.wallet_id}/${row.ordinal}`
    const outgoing = movements.get(key)
    // Both ends are in the wallet: one record, the outgoing one (docs/decisions/transfers.md).
    movements.set(key, outgoing ? { ...outgoing, is_internal: true } : row)
  }
  return [...movements.values()]
}

function toNotification(
  delivery: WaitingNotification,
  { records, isCut, pending }: Content,
  { chain, head }: Due,
): Notification {
  const { transaction_hash, transfer_block, backfilled, sink } = delivery
  return {
    delivery,
    data: {
      [chain.transactionField]: chain.formatTransactionHash(transaction_hash),
      confirmations: confirmationsOf(transfer_block, head),
      ...(backfilled && { backfilled: true }),
      // A stream distinguishes the first event of a transfer from its confirmation.
      ...(sink !== null && delivery.pending !== null && { confirmed: true }),
      ...(isCut && { transfers_omitted: true }),
      transfers: records,
    },
    pending,
  }
}
