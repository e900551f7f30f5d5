import type { Chain } from '../chains/chain.ts'
import { systemClock } from '../lib/clock.ts'
import { systemIds } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { Db } from '../storage/pg/database.ts'
import { ensureNetwork } from '../storage/tracking/networks.ts'
import {
  type BackfillOptions,
  type BackfillOutcome,
  runBackfill,
} from '../workers/tracker/backfill.ts'
import { planRewind, type RewindPlan, runRewind } from '../workers/tracker/rewind.ts'
import { placesOf } from './chain-openers.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import { InstallationError } from './installation.ts'
import { openNetworks } from './networks.ts'

/** What a command needs to work on a chain. */
export type ChainTools = { db: Db; env: Env; log: Log; at: { chain: string; network?: string } }

/** Opens a configured chain beside the service for as long as it is used. */
export async function withChain<result>(
  config: Config,
  { db, env, log, at }: ChainTools,
  use: (opened: { network_id: number; network: string; chain: Chain }) => Promise<result>,
): Promise<result> {
  const clock = systemClock
  const networks = openNetworks(config, { env, log, clock, ids: systemIds, spill: () => {} })
  try {
    const place = placesOf(config, { env, clock, log, networks }).find(
      ({ chain, network, isDefault }) =>
        chain === at.chain && (at.network === undefined ? isDefault : network === at.network),
    )
    if (!place)
      throw new InstallationError(`The chain "${Object.values(at).join('/')}" is not configured.`)
    const { network } = place
    const chain = await place.open()
    try {
      const create_time = new Date(clock.now())
      const network_id = await ensureNetwork(db, {
        ...{ chain: at.chain, network, create_time, is_default: place.isDefault },
        variants: place.variants ?? '',
      })
      return await use({ network_id, network, chain })
    } finally {
      await chain.stop()
    }
  } finally {
    await networks.stop()
  }
}

/** Opens a configured chain beside the service and indexes its history. */
export const backfillChain = (
  config: Config,
  tools: ChainTools,
  range: Pick<BackfillOptions, 'from' | 'to' | 'signal' | 'onProgress'>,
): Promise<BackfillOutcome> =>
  withChain(config, tools, ({ network_id, chain }) =>
    runBackfill({ db: tools.db, clock: systemClock, network_id, chain, ...range }),
  )

/** Opens a configured chain beside the service and retracts what is above a block, if that is agreed to. */
export const rewindChain = (
  config: Config,
  tools: ChainTools,
  { to, signal }: { to: number; signal: AbortSignal },
  agree: (plan: RewindPlan, network: string) => boolean,
): Promise<boolean> =>
  withChain(config, tools, async ({ network_id, network, chain }) => {
    const options = { db: tools.db, clock: systemClock, network_id, chain, to, signal }
    const plan = await planRewind(options)
    if (!agree(plan, network)) return false
    await runRewind(options, plan)
    return true
  })
