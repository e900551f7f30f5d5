import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { freshDatabase, hasEngine } from '../../../test/helpers/database.ts'
import type { Engine } from '../../../test/helpers/postgres.ts'
import { insertRows } from './bulk.ts'

const time = new Date('2026-11-15T10:20:30.456Z')
const later = new Date(time.getTime() + 60_000)

describe.each<Engine>(['embedded', 'system'])('bulk inserts on %s', (engine) => {
  describe.skipIf(!hasEngine(engine))('a server', () => {
    test('carry any number of rows, twice without change, with every kind of value', async () => {
      const { db } = await freshDatabase(engine)
      const nonce = { credential_id: randomUUID(), expire_time: later }
      const rows = Array.from({ length: 20_000 }, (_, i) => ({ ...nonce, nonce: String(i) }))
      expect(await insertRows(db, 'request_nonce', rows)).toBe(20_000)
      expect(await insertRows(db, 'request_nonce', [...rows, { ...nonce, nonce: 'x' }])).toBe(1)
      expect(await insertRows(db, 'request_nonce', [])).toBe(0)
      await insertRows(db, 'network', [
        {
          network_id: 1,
          chain: 'c',
          network: 'm',
          variants: 'C',
          is_default: true,
          create_time: time,
          is_traced: false,
        },
      ])
      const asset = {
        asset_id: randomUUID(),
        network_id: 1,
        asset_type: 'ASSET_TYPE_ERC721' as const,
        contract_address: Buffer.from('00ff5c', 'hex'),
        token_id: 2n ** 256n - 1n,
        name: 'quote " backslash \\ line \n snow ☃ 😀',
        create_time: time,
      }
      const plain = { ...asset, asset_id: randomUUID(), symbol: 'S' }
      expect(await insertRows(db, 'asset', [asset, plain])).toBe(2)
      const stored = await db.selectFrom('asset').selectAll().where('network_id', '=', 1).execute()
      expect(stored).toContainEqual(expect.objectContaining(asset))
      expect(stored).toContainEqual(expect.objectContaining(plain))
    })
  })
})
