// Rotation of the master key. It runs beside the services, page by page. It can be interrupted and repeated, because each
// sealed value names the key that sealed it.

import { sql } from 'kysely'
import type { Sealer } from '../../storage/access/seal.ts'
import type { Db } from '../../storage/pg/database.ts'
import { auditKeyContext } from '../audit/key-context.ts'
import { headerContext, secretContext } from '../webhooks/secret.ts'
import { sealContext } from './credential-keys.ts'
import { answerContext } from './idempotency.ts'
import { installationKeyContext } from './key-mac.ts'

/** A column of sealed values, and what each of them is sealed for. */
type SealedColumn = {
  table: string
  column: string
  /** The primary key, as text and in order. */
  key: readonly [string] | readonly [string, string]
  /** The type of the first column of the key, so that its index is used. */
  type: 'uuid' | 'int2' | 'text'
  contextOf(key: readonly string[]): string
}

const one = (
  table: string,
  column: string,
  key: string,
  contextOf: (id: string) => string,
): SealedColumn => ({
  ...{ table, column, key: [key], type: 'uuid' },
  contextOf: ([id = '']) => contextOf(id),
})

/** Every column that the master key seals; a test compares it with the schema. */
export const sealedColumns: readonly SealedColumn[] = [
  one('credential', 'api_key_sealed', 'credential_id', (id) => sealContext('api_key', id)),
  one('credential', 'api_secret_sealed', 'credential_id', (id) => sealContext('api_secret', id)),
  one('webhook', 'secret_sealed', 'webhook_id', secretContext),
  one('webhook', 'previous_secret_sealed', 'webhook_id', secretContext),
  one('webhook_header', 'header_value_sealed', 'webhook_header_id', headerContext),
  {
    table: 'idempotency_key',
    column: 'answer_sealed',
    key: ['credential_id', 'key_hash'],
    type: 'uuid',
    contextOf: ([id = '', hash = '']) => answerContext(id, Buffer.from(hash.slice(2), 'hex')),
  },
  {
    table: 'audit_chain',
    column: 'private_key_sealed',
    key: ['id'],
    type: 'int2',
    contextOf: () => auditKeyContext,
  },
  {
    table: 'installation_key',
    column: 'key_sealed',
    key: ['name'],
    type: 'text',
    contextOf: ([name = '']) => installationKeyContext(name),
  },
]

/** Values by the id of the key that sealed them. */
export type KeyUse = { table: string; column: string; key_id: string; count: number }

// version | key id | …
const keyIdIn = (column: string) => sql<string>`encode(substr(${sql.ref(column)}, 2, 4), 'hex')`

/** Counts the sealed values of every key. */
export async function countKeyUses(db: Db): Promise<KeyUse[]> {
  const uses: KeyUse[] = []
  for (const { table, column } of sealedColumns) {
    const { rows } = await sql<{ key_id: string; count: number }>`
      select ${keyIdIn(column)} as key_id, count(*)::int as count from ${sql.table(table)}
      where ${sql.ref(column)} is not null group by 1 order by 1`.execute(db)
    uses.push(...rows.map((row) => ({ table, column, ...row })))
  }
  return uses
}

/**
 * Seals everything again that an earlier master key has sealed, page by page, beside running services.
 * A value that changed meanwhile is left as it is. It can be interrupted and run again at any time.
 */
export async function resealAll(
  { db, sealer }: { db: Db; sealer: Sealer },
  options: { pageSize?: number; onPage?(table: string, done: number): void } = {},
): Promise<number> {
  const { pageSize = 500, onPage = () => {} } = options
  let done = 0
  for (const each of sealedColumns) {
    const { table, column, key } = each
    const keys = sql.join(key.map((name) => sql`${sql.ref(name)}::text`))
    let after: readonly string[] = key.map(() => '')
    for (;;) {
      const { rows } = await sql<{ key: string[]; sealed: Buffer }>`
        select array[${keys}] as key, ${sql.ref(column)} as sealed from ${sql.table(table)}
        where ${sql.ref(column)} is not null and ${keyIdIn(column)} <> ${sealer.key_id}
          and array[${keys}] > ${after}::text[]
        order by array[${keys}] limit ${pageSize}`.execute(db)
      for (const { key: found, sealed } of rows) {
        const context = each.contextOf(found)
        const again = sealer.seal(sealer.open(sealed, context), context)
        const { numAffectedRows } = await sql`update ${sql.table(table)}
          set ${sql.ref(column)} = ${again}
          where array[${keys}] = ${found}::text[] and ${sql.ref(key[0])} = ${found[0]}::text::${sql.raw(each.type)}
            and ${sql.ref(column)} = ${sealed}`.execute(db)
        done += Number(numAffectedRows ?? 0n)
      }
      const last = rows.at(-1)
      if (!last) break
      after = last.key
      onPage(table, done)
    }
  }
  return done
}
