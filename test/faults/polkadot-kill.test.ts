import { expect, it } from 'vitest'
import { freshDatabase } from '../helpers/database.ts'
import { runPolkadotKills } from './polkadot-kill.ts'

it('killed trackers and nodes lose and double nothing of Asset Hub', async () => {
  const outcome = await runPolkadotKills(await freshDatabase(), { seed: 3 })
  expect(outcome.kills).toBeGreaterThan(0)
  expect(outcome.transfers).toBeGreaterThan(0)
}, 120_000)
