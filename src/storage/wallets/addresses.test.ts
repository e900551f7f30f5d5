import { Kysely, PostgresDialect, type PostgresPool } from 'kysely'
import { expect, it } from 'vitest'
import type { Tables } from '../pg/tables.ts'
import { insertAddresses } from './addresses.ts'

it('registers many addresses in short statements, so that those of other callers run between them', async () => {
  const sizes: number[] = []
  const client = {
    query: async (_: string, values: readonly unknown[]) => {
      // The one column that differs is an array, of which the driver gets the bytes: 4 and 20 for each address.
      const array = values.find((value) => Buffer.isBuffer(value) && value.length > 20) as Buffer
      const rowCount = Math.floor(array.length / 24)
      sizes.push(rowCount)
      return { command: 'INSERT', rowCount, rows: [] }
    },
    release() {},
  }
  const pool = { connect: async () => client, end: async () => {} } as unknown as PostgresPool
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  const scope = { organization_id: crypto.randomUUID(), network_id: 1 }
  const addresses = Array.from({ length: 250 }, (_, index) => Buffer.alloc(20, index))
  const create_time = new Date(0)
  const wallet_id = crypto.randomUUID()
  const added = await insertAddresses(db, scope as never, { wallet_id, addresses, create_time })
  expect(sizes).toEqual([100, 100, 50])
  expect(added).toBe(250)
})
