import type { Chain } from '../chains/chain.ts'
import type { WalletService } from '../contract/variant.ts'
import { systemClock } from '../lib/clock.ts'
import { systemIds } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { Db } from '../storage/pg/database.ts'
import { ensureChain } from '../storage/tracking/chains.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import { InstallationError } from './installation.ts'
import { openNetworks } from './networks.ts'
import { systemOpeners } from './wallets.ts'

/** What a command needs to work on a chain. */
export type ChainTools = { db: Db; env: Env; log: Log; service: WalletService }

/** Opens a configured chain beside the service for as long as it is used. */
export async function withChain<result>(
  config: Config,
  { db, env, log, service }: ChainTools,
  use: (opened: { chain_id: number; network: string; chain: Chain }) => Promise<result>,
): Promise<result> {
  const clock = systemClock
  const networks = openNetworks(config, { env, log, clock, ids: systemIds, spill: () => {} })
  try {
    const opened = await systemOpeners[service]?.(config, { env, clock, log, networks })
    if (!opened) throw new InstallationError(`The chain "${service}" is not configured.`)
    const { network, chain } = opened
    try {
      const create_time = new Date(clock.now())
      const chain_id = await ensureChain(db, { chain: service, network, create_time })
      return await use({ chain_id, network, chain })
    } finally {
      await chain.stop()
    }
  } finally {
    await networks.stop()
  }
}
