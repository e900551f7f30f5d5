import type { WalletService } from '../chains/chain.ts'
import { systemClock } from '../lib/clock.ts'
import { systemIds } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { ensureChain } from '../storage/chains.ts'
import type { Db } from '../storage/database.ts'
import { type BackfillOptions, type BackfillOutcome, runBackfill } from '../workers/backfill.ts'
import type { Env } from './config/env-source.ts'
import type { Config } from './config/schema.ts'
import { InstallationError } from './installation.ts'
import { openNetworks } from './networks.ts'
import { systemOpeners } from './wallets.ts'

/** Opens a configured chain beside the service and indexes its history. */
export async function backfillChain(
  config: Config,
  tools: { db: Db; env: Env; log: Log; service: WalletService },
  range: Pick<BackfillOptions, 'from' | 'to' | 'signal' | 'onProgress'>,
): Promise<BackfillOutcome> {
  const { db, env, log, service } = tools
  const clock = systemClock
  const networks = openNetworks(config, { env, log, clock, ids: systemIds, spill: () => {} })
  try {
    const opened = await systemOpeners[service]?.(config, { env, clock, log, networks })
    if (!opened) throw new InstallationError(`The chain "${service}" is not configured.`)
    const { network, chain } = opened
    try {
      const create_time = new Date(clock.now())
      const chain_id = await ensureChain(db, { chain: service, network, create_time })
      return await runBackfill({ db, clock, chain_id, chain, ...range })
    } finally {
      await chain.stop()
    }
  } finally {
    await networks.stop()
  }
}
