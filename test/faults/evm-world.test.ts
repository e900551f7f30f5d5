import { afterAll, expect, it } from 'vitest'
import { startKillableDatabase } from '../helpers/killable-database.ts'
import { runEvmWorld, startWorldAnvil } from './evm-world.ts'

const database = await startKillableDatabase()
afterAll(database.stop)
const anvil = await startWorldAnvil()
afterAll(anvil.stop)

it('all kinds of transfers, forks, a killed tracker and a killed database: the lists match the blocks', async () => {
  const outcome = await runEvmWorld({ ...database, anvil }, { seed: 4, steps: 3, deadly: true })
  expect(outcome.kills).toBeGreaterThan(0)
  expect(outcome.database_kills).toBeGreaterThan(0)
  expect(outcome.transfers).toBeGreaterThan(20)
}, 300_000)

it('balances that no event has named are found and added, beside kills and forks', async () => {
  const outcome = await runEvmWorld({ ...database, anvil }, { seed: 6, steps: 3, deadly: true })
  expect(outcome.kills).toBeGreaterThan(0)
  expect(outcome.balances).toBeGreaterThan(20)
}, 300_000)
