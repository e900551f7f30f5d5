import type { Chain } from '../../chains/chain.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Env } from '../config/problem.ts'
import type { Config } from '../config/schema.ts'
import type { Networks } from '../networks.ts'

/** What a chain is opened with. */
export type OpenerTools = {
  env: Env
  clock: Clock
  log: Log
  networks: Pick<Networks, 'poolOf' | 'notifySent'>
}

/** Opens the chain of one wallet service on its default network; undefined when it is not configured. */
export type Opener = (
  config: Config,
  tools: OpenerTools,
) => Promise<{ network: string; chain: Chain } | undefined>
