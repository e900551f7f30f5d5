import type { QuerySource } from '../domain/query/source.ts'
import type { Answer } from '../gateway/rpc/answer.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Db } from '../storage/pg/database.ts'
import { ensureNetwork } from '../storage/tracking/networks.ts'
import { type PendingStatus, startPendingRecorder } from '../workers/pending/pending.ts'
import type { Config } from './config/schema.ts'
import type { Networks } from './networks.ts'

/** The query chain. */
export type Query = {
  /** Absent where it is not configured. */
  source: QuerySource | undefined
  /** Of the recorder of pending transactions. */
  status?(): PendingStatus
  stop(): Promise<void>
}

/** Opens the query chain on its default network, and records what is pending on it. */
export async function openQuery(
  config: Config,
  tools: { db: Db; clock: Clock; log: Log; networks: Networks },
): Promise<Query> {
  const { db, clock, log, networks } = tools
  const chain = config.chains.q
  const network = chain && networks.byPath.get(`/q/${chain.default_network}`)
  if (!network) return { source: undefined, stop: async () => {} }
  const { pool, view, cache } = network
  const { prefix, record_pending: listens } = chain
  const network_id = await ensureNetwork(db, {
    chain: 'q',
    network: network.network,
    create_time: new Date(clock.now()),
  })
  const heads: Pick<typeof pool, 'onHead'> = {
    onHead: (listener) =>
      view.onChange(({ added }) => {
        for (const head of added) listener(head, 'canonical')
      }),
  }
  const recorder = startPendingRecorder({
    db,
    pool: { ...pool, ...heads },
    prefix,
    network_id,
    clock,
    log,
    listens,
  })
  networks.onSent((hash, to) => {
    // Chains of the same id may still be different ones; then the nodes of this one will not know it.
    if (to === pool || (to.chainId() !== undefined && to.chainId() === pool.chainId()))
      recorder.see(hash)
  })
  const source: QuerySource = {
    network_id,
    prefix,
    pool: { ...pool, head: view.head },
    view,
    timeoutMs: config.gateway.timeout_seconds * 1000,
    read: async (principal, method, args) =>
      toSourceAnswer(await network.read(method, args, network.sessionOf(principal))),
    kept: {
      find: (key) => cache?.find(key, view)?.result,
      keep: (key, result, { number, hash }) => {
        if (number <= view.final() || view.hashAt(number) === hash)
          cache?.keep(key, { result, number, hash }, view)
      },
    },
    seePending: recorder.record,
    pendingOf: recorder.contentOf,
  }
  return { source, status: recorder.status, stop: recorder.stop }
}

// A node that refuses such a simple call has a problem: the error is not passed on to the client.
const toSourceAnswer = ({ ok, text, refusal }: Answer) =>
  ok
    ? { ok: true as const, result: text }
    : { ok: false as const, reason: refusal?.reason ?? ('UPSTREAM_UNAVAILABLE' as const) }
