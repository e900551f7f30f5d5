import type { WalletService } from '../../src/contract/variant.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { startKillableDatabase } from '../helpers/killable-database.ts'
import { createRandom } from '../helpers/random.ts'
import { compareSums, compareWorld } from '../helpers/tracker-compare.ts'
import { createWorld } from '../helpers/tracker-world.ts'
import { readNumbers, runSeeds } from './program.ts'

/** What one run came to. */
export type ModelOutcome = {
  compared: number
  crashes: number
  blocks: number
  refills: number
  rewinds: number
}

/**
 * Lets a chain grow, fork and return to branches that it left, addresses come and go, the tracker die at random statements and be
 * rewound below the blocks that are stored, and compares every list, balance and notification with a model that computes them from scratch.
 */
export const runModel = async (
  db: Db,
  {
    service,
    seed,
    steps,
    rewinds = 0,
    settles,
  }: {
    service: WalletService
    seed: number
    steps: number
    /** The share of the steps in which the tracker is rewound. */
    rewinds?: number
    /**
     * The share of the steps after which balances are read, where it is not the usual one. Then nothing moves from time to time
     * until every wallet has its confirmations: a reading that was forgotten is not made up for by the next movement.
     */
    settles?: number
  },
): Promise<ModelOutcome> => {
  const random = createRandom(seed)
  const world = await createWorld(db, {
    ...{ service, random, settles },
    network: `model-${service}-${seed}${rewinds > 0 ? '-rewound' : ''}`,
  })
  let compared = 0
  let step = 0
  const fail = (differences: unknown[]) => {
    if (differences.length > 0)
      throw new Error(
        `service ${service}, seed ${seed}, step ${step}: ${JSON.stringify(differences.slice(0, 3), null, 1)}`,
      )
  }
  // Also while balances are read again, and on the way back to the head.
  const afterEach = async () => fail(await compareSums(db, world))
  for (; step < steps; step++) {
    if (world.chance(0.6)) world.grow()
    if (service === 'c' && world.chance(0.25)) world.fork()
    // Also back and forth before the tracker reads.
    while (service === 'c' && world.chance(0.25)) world.comeBack()
    for (let left = world.pick(4); left > 0; left--) await world.change()
    await world.run({ steps: 1 + world.pick(6), deadly: true, afterEach })
    if (world.chance(0.3)) await world.refill({ deadly: true })
    if (rewinds > 0 && world.chance(rewinds)) await world.rewind({ deadly: true })
    const isRest = settles !== undefined && step % 8 === 7
    if (isRest) world.rest(40)
    else if (world.chance(0.5)) continue
    if (world.chance(0.5)) await world.refill()
    await world.run({ afterEach })
    fail(await compareWorld(db, world))
    compared++
  }
  if (world.repairs() > 0)
    throw new Error(`service ${service}, seed ${seed}: ${world.repairs()} balances were corrected`)
  const blocks = world.bench.chain.canonical().length
  return {
    compared,
    crashes: world.crashes(),
    blocks,
    refills: world.refills(),
    rewinds: world.rewinds(),
  }
}

if (import.meta.main) {
  const { steps, ...seeds } = readNumbers({ seeds: 100, seed: 1, steps: 60 })
  const database = await startKillableDatabase()
  try {
    const total = await runSeeds(seeds, async (seed) => {
      const sum = { runs: 0, compared: 0, crashes: 0, blocks: 0, refills: 0, rewinds: 0 }
      for (const service of seed % 2 ? (['c'] as const) : (['c', 't', 's', 'p'] as const)) {
        const outcome = await runModel(database.db, {
          ...{ service, seed, steps },
          // Not in all: after a rewind less is asked of balances for some time.
          rewinds: seed % 3 === 0 ? 0.08 : 0,
          ...(seed % 4 === 3 && { settles: 0.1 }),
        })
        const { compared, crashes, blocks, refills, rewinds } = outcome
        sum.runs++
        sum.compared += compared
        sum.crashes += crashes
        sum.blocks += blocks
        sum.refills += refills
        sum.rewinds += rewinds
      }
      return sum
    })
    console.log('every list, balance and notification as the model says:', total)
  } finally {
    await database.stop()
  }
}
