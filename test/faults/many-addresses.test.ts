import { expect, it } from 'vitest'
import { freshDatabase } from '../helpers/database.ts'
import { runManyAddresses } from './many-addresses.ts'

const { db } = await freshDatabase()

it('the last of many addresses, registered one block earlier, misses nothing in two organizations', async () => {
  const { addresses } = await runManyAddresses(db, 20_000)
  expect(addresses).toBe(20_000)
}, 240_000)
