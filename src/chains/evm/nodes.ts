import type { Pool } from '../upstream/pool-types.ts'

/** As much of a pool of nodes as a chain needs. */
export type Nodes = Pick<Pool, 'request' | 'head' | 'onHead' | 'can' | 'chainId'>
