import { expect, it } from 'vitest'
import { freshDatabase } from '../helpers/database.ts'
import { runWebhookCampaign } from './webhook-kill.ts'

// The whole campaign: npm run campaign.
it('a courier that is killed loses nothing, and repeats with the same id only', async () => {
  const database = await freshDatabase()
  const { connection } = database
  const outcome = await runWebhookCampaign({
    database,
    connection,
    kills: 2,
    events: 300,
    seed: 7,
  })
  expect(outcome).toMatchObject({ kills: 2, events: 600, lost: 0, different: 0, holes: 0 })
}, 120_000)
