import { systemClock } from '../lib/clock.ts'
import {
  type BackfillOptions,
  type BackfillOutcome,
  runBackfill,
} from '../workers/tracker/backfill.ts'
import type { Config } from './config/schema.ts'
import { type ChainTools, withChain } from './open-chain.ts'

/** Opens a configured chain beside the service and indexes its history. */
export const backfillChain = (
  config: Config,
  tools: ChainTools,
  range: Pick<BackfillOptions, 'from' | 'to' | 'signal' | 'onProgress'>,
): Promise<BackfillOutcome> =>
  withChain(config, tools, ({ chain_id, chain }) =>
    runBackfill({ db: tools.db, clock: systemClock, chain_id, chain, ...range }),
  )
