import { afterAll, expect, it } from 'vitest'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import { freshDatabase } from '../helpers/database.ts'
import { runEvmWorld } from './evm-world.ts'

const { db, connection } = await freshDatabase()
const anvil = await startAnvil({ args: ['--no-mining'] })
afterAll(anvil.stop)

it('all kinds of transfers, forks and a killed tracker: the lists are what the blocks say', async () => {
  const outcome = await runEvmWorld({ db, connection, anvil }, { seed: 4, steps: 4, deadly: true })
  expect(outcome.kills).toBeGreaterThan(0)
  expect(outcome.transfers).toBeGreaterThan(20)
}, 300_000)
