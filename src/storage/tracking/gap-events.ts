import { sql } from 'kysely'
import type { Db } from '../pg/database.ts'
import { openEvent, resolveEvent } from './operational-events.ts'

/**
 * Keeps the operational event of a network's gaps true: one for all of them, because any account that can
 * make a block unreadable could make any number of gaps. To be called where gaps have changed.
 */
export const syncGapEvent = async (trx: Db, network_id: number, now: Date): Promise<void> => {
  const { rows } = await sql<{
    chain: string
    network: string
    gaps: number
    blocks: number
    first: number
    last: number
    reason: string
  }>`
    select n.chain, n.network, g.* from network n, (
      select count(*)::int8 as gaps, coalesce(sum(to_block - from_block + 1), 0)::int8 as blocks,
        coalesce(min(from_block), 0) as first, coalesce(max(to_block), 0) as last,
        coalesce((array_agg(reason order by to_block desc))[1], '') as reason
      from tracker_gap where network_id = ${network_id} and close_time is null) g
    where n.network_id = ${network_id}`.execute(trx)
  const [found] = rows
  if (!found) return
  const { chain, network, gaps, blocks, first, last, reason } = found
  const name = { kind: 'gap' as const, chain, network, now }
  if (gaps === 0) await resolveEvent(trx, name)
  else
    await openEvent(trx, {
      ...name,
      detail: `${gaps} gaps with ${blocks} blocks between ${first} and ${last}: ${reason}`,
    })
}
