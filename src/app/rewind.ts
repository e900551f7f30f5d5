import { systemClock } from '../lib/clock.ts'
import { planRewind, type RewindPlan, runRewind } from '../workers/tracker/rewind.ts'
import type { Config } from './config/schema.ts'
import { type ChainTools, withChain } from './open-chain.ts'

/** Opens a configured chain beside the service and takes back what is above a block, if that is agreed to. */
export const rewindChain = (
  config: Config,
  tools: ChainTools,
  { to, signal }: { to: number; signal: AbortSignal },
  agree: (plan: RewindPlan, network: string) => boolean,
): Promise<boolean> =>
  withChain(config, tools, async ({ chain_id, network, chain }) => {
    const options = { db: tools.db, clock: systemClock, chain_id, chain, to, signal }
    const plan = await planRewind(options)
    if (!agree(plan, network)) return false
    await runRewind(options, plan)
    return true
  })
