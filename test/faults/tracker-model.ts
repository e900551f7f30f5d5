import { parseArgs } from 'node:util'
import type { WalletService } from '../../src/chains/chain.ts'
import { silentLog } from '../../src/lib/log.ts'
import { type Db, openDatabase } from '../../src/storage/database.ts'
import { migrateDatabase } from '../../src/storage/migrate.ts'
import { embeddedBinaries, startTestServer } from '../helpers/postgres.ts'
import { createRandom } from '../helpers/random.ts'
import { compareWorld } from '../helpers/tracker-compare.ts'
import { createWorld } from '../helpers/tracker-world.ts'

/** What one run came to. */
export type ModelOutcome = { compared: number; crashes: number; blocks: number }

/**
 * Lets a chain grow and fork, addresses come and go and the tracker die at random statements, and
 * compares every list, balance and notification with a model that computes them from scratch.
 */
export const runModel = async (
  db: Db,
  { service, seed, steps }: { service: WalletService; seed: number; steps: number },
): Promise<ModelOutcome> => {
  const random = createRandom(seed)
  const world = await createWorld(db, { service, random, network: `model-${service}-${seed}` })
  let compared = 0
  for (let step = 0; step < steps; step++) {
    if (world.chance(0.6)) world.grow()
    if (service === 'c' && world.chance(0.25)) world.fork()
    for (let left = world.pick(4); left > 0; left--) await world.change()
    await world.run({ steps: 1 + world.pick(6), deadly: true })
    if (world.chance(0.5)) continue
    await world.run()
    const differences = await compareWorld(db, world)
    compared++
    if (differences.length > 0)
      throw new Error(
        `service ${service}, seed ${seed}, step ${step}: ${JSON.stringify(differences.slice(0, 3), null, 1)}`,
      )
  }
  if (world.repairs() > 0)
    throw new Error(`service ${service}, seed ${seed}: ${world.repairs()} balances were put right`)
  const blocks = world.bench.chain.canonical().length
  return { compared, crashes: world.crashes(), blocks }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '100' },
      seed: { type: 'string', default: '1' },
      steps: { type: 'string', default: '40' },
    },
  })
  const server = await startTestServer(await embeddedBinaries())
  const database = openDatabase({ connection: server.connection, log: silentLog })
  try {
    for (;;) {
      const up = await migrateDatabase(database.db, { log: silentLog }).catch(() => undefined)
      if (up) break
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    const total = { runs: 0, compared: 0, crashes: 0, blocks: 0 }
    const first = Number(values.seed)
    for (let seed = first; seed < first + Number(values.seeds); seed++)
      for (const service of ['c', 'c', 't', 's', 'p'].slice(seed % 2 ? 0 : 1, seed % 2 ? 1 : 5)) {
        const options = { service: service as WalletService, seed, steps: Number(values.steps) }
        const { compared, crashes, blocks } = await runModel(database.db, options)
        total.runs++
        total.compared += compared
        total.crashes += crashes
        total.blocks += blocks
      }
    console.log('every list, balance and notification as the model says:', total)
  } finally {
    await database.stop()
    await server.stop()
  }
}
