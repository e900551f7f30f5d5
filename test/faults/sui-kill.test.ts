import { expect, it } from 'vitest'
import { freshDatabase } from '../helpers/database.ts'
import { runSuiKill } from './sui-kill.ts'

it('nothing on Sui is lost or doubled when the tracking process is killed', async () => {
  const { db, connection } = await freshDatabase()
  const outcome = await runSuiKill(db, connection, { seed: 11, kills: 2 })
  expect(outcome.transfers).toBeGreaterThan(5)
  expect(outcome.notifications).toBeGreaterThan(3)
  expect(outcome.balances).toBeGreaterThan(5)
  expect([outcome.sums, outcome.removals]).toEqual([12, 1])
}, 120_000)
