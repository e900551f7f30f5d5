import type { Chain } from '../../chains/chain.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Tracing } from '../../lib/tracing.ts'
import type { Db } from '../../storage/pg/database.ts'
import type { FanOutLimits } from '../../storage/webhooks/fan-out-limits.ts'
import type { HeldLease } from '../lease.ts'
import type { ReleaseLimits } from './notifications.ts'
/** What every write of a tracker needs. */
export type TrackerTools = {
  db: Db
  clock: Clock
  network_id: number
  chain: Chain
  /** Its epoch fences each write: a process that lost the lease cannot commit. */
  lease: HeldLease
  /** How many blocks back a reorganization may reach. */
  window: number
  releaseLimits?: ReleaseLimits
  fanOutLimits?: FanOutLimits
  /** How much balance work one round takes, where it is not the usual number. */
  balanceRows?: number
  tracing?: Tracing | undefined
}
