import { expect, it } from 'vitest'
import { freshDatabase } from '../helpers/database.ts'
import { runSenderKills } from './sender-kill.ts'

const { db, connection } = await freshDatabase()

it('exactly one transaction is on the chain, wherever the process that sends it was killed', {
  timeout: 300_000,
}, async () => {
  const outcome = await runSenderKills({ db, connection }, { points: 2 })
  expect(outcome.kills).toBe(2)
  // All of them are gone through by the campaign.
  expect(outcome.points).toBeGreaterThanOrEqual(50)
})
