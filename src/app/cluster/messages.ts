import type { Demo } from '../bootstrap.ts'
import type { Config } from '../config/schema.ts'
import type { DatabaseServer } from '../data-directory.ts'
import type { PartPlan } from './part.ts'

/** The first message to a process. */
export type StartMessage = {
  plan: PartPlan
  config: Config
  cwd: string
  version: string
  port: number
  server: Pick<DatabaseServer, 'mode' | 'connection' | 'direct'>
  /** Whether the supervisor grants parts of the limits. */
  isGranted: boolean
  /** Whether the port is shared with the other processes by the system. */
  reusePort: boolean
}

/** A process runs. */
export type StartedMessage = {
  base_url: string
  ws_url: string
  port: number
  demo: Demo | undefined
}
