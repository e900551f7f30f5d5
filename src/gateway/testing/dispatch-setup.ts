import type { Head, PoolRequest } from '../../chains/evm/pool/pool-types.ts'
import { createNetwork } from '../network.ts'
import type { Answer } from '../rpc/answer.ts'
import { createFakePool } from './fake-pool.ts'
import { createStillCanonical } from './still-canonical.ts'

/** The hash of a block of a branch. */
export const hash = (number: number, branch = 0) =>
  `0x${branch.toString(16).padStart(4, '0')}${number.toString(16).padStart(60, '0')}`
/** A block of a branch. */
export const head = (number: number, branch = 0, parent = branch): Head => ({
  number,
  hash: hash(number, branch),
  parent_hash: hash(number - 1, parent),
  timestamp: number,
})
/** An address. */
export const address = `0x${'a'.repeat(40)}`
const principal = (credential_id: string) => ({
  credential_id,
  organization_id: 'o',
  role: 'ROLE_MEMBER' as const,
})

/** A network on nodes that a test decides, at block 100. */
export const open = ({ upstreams = 2, cacheBytes = 1_000_000, maxLogRange = 1000 } = {}) => {
  const pool = createFakePool({ upstreams })
  let time = 1_000_000
  pool.best = head(100)
  pool.answer = ({ params }) => ({ ok: true, result: JSON.stringify(params) })
  const network = createNetwork({
    chain: 'c',
    network: 'm',
    prefix: 'eth',
    pool,
    canonical: createStillCanonical(pool, { now: () => time, finalityDepth: 10 }),
    allowedMethods: ['evm_feeHistory', 'debug_traceTransaction', 'txpool_status'],
    filterOf: (id) => (id === '0xf' ? { fromBlock: '0x5', toBlock: '0x9', address } : undefined),
    cacheBytes,
    maxLogRange,
    timeoutMs: 1000,
    now: () => time,
    spill: () => {},
  })
  const call = (method: string, args: unknown[], key = 'k') =>
    new Promise<Answer>((resolve) =>
      network.call(
        { id: '1', method, params: JSON.stringify(args), args, refusal: undefined },
        network.sessionOf(principal(key)),
        resolve,
      ),
    )
  const pass = (ms: number) => {
    time += ms
  }
  return { pool, network, call, pass, last: () => pool.sent.at(-1) as PoolRequest }
}
