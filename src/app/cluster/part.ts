// Several processes as one service. What a process gets from its supervisor.

import type { Limiter } from '../../domain/limits/limiter.ts'
import type { DatabaseServer } from '../data-directory.ts'
import type { FilterPeers } from '../filter-peers.ts'

/** What the app of one of several processes gets from its supervisor. */
export type ServicePart = {
  server: Pick<DatabaseServer, 'mode' | 'connection' | 'direct'>
  peers: FilterPeers
  /** Admits from what the supervisor grants; undefined where the process counts itself or with Redis. */
  limiter: Limiter | undefined
}
