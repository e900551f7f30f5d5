import { expect, it } from 'vitest'
import { startTestApp } from '../helpers/app.ts'
import { leaksIn } from '../helpers/log-capture.ts'

const service = await startTestApp()
const tenant = await service.createTenant()

/** Every value of every table as text, binary columns in hex and as the text they may hold. */
const dump = async (): Promise<string> => {
  const { pool } = service.database
  const { rows: tables } = await pool.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'public'`,
  )
  const parts: string[] = []
  for (const { name } of tables) {
    const { rows } = await pool.query<{ row: string }>(`select t::text as row from ${name} t`)
    for (const { row } of rows) {
      parts.push(row)
      for (const [hex] of row.matchAll(/(?<=\\x)(?:[0-9a-f]{2})+/g))
        parts.push(Buffer.from(hex, 'hex').toString('latin1'))
    }
  }
  return parts.join('\n')
}

it('no key and no secret can be read from a dump of the database', async () => {
  const { json } = await service.call(tenant.admin, 'admin/CreateCredential', {
    organization_id: tenant.organization_id,
    name: 'find-me-in-the-dump',
  })
  await service.call(json.credential, 'admin/GetRateLimit', {
    organization_id: tenant.organization_id,
  })
  const text = await dump()
  expect(text).toContain('find-me-in-the-dump')
  expect(text).toContain(tenant.organization_id)
  expect(leaksIn(text)).toEqual([])
  // The audit log names a key by the four characters that lists of credentials show.
  expect([...text.matchAll(/pl[ks]_[\w-]*/g)].filter(([word]) => word.length > 8)).toEqual([])
})

it('every sealed value is different', async () => {
  const { rows } = await service.database.pool.query(
    'select api_key_hash, api_key_sealed, api_secret_sealed from credential',
  )
  const values = rows
    .flatMap((row) => Object.values<Buffer>(row))
    .map((value) => value.toString('hex'))
  expect(values.length).toBeGreaterThanOrEqual(9)
  expect(new Set(values).size).toBe(values.length)
})
