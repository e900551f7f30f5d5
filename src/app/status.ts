// Probes and `/status`. A probe answers within `probeTimeoutMs` whatever the database does: an orchestrator would take a
// probe that hangs for a dead process.

import { sql } from 'kysely'
import type { Limiter } from '../domain/limits/limiter.ts'
import type { Clock } from '../lib/clock.ts'
import { toTimestamp } from '../lib/clock.ts'
import { schemaVersion } from '../storage/migrations/migrate.ts'
import type { Db } from '../storage/pg/database.ts'
import { listEvents } from '../storage/tracking/operational-events.ts'
import type { ListedEventRow } from '../storage/tracking/tables.ts'
import type { Courier } from '../workers/webhooks/courier.ts'
import type { Config } from './config/schema.ts'
import type { Networks, NodesStatus } from './networks.ts'
import type { Query } from './query.ts'
import type { Wallets } from './wallets.ts'

// Below the time limits of usual probes, so that "unreachable" is reported and not a timeout.
const probeTimeoutMs = 2_000
const shownEvents = 50

/** Says why requests cannot be served; undefined when they can. Callers at the same time share one query. */
export function createReadiness(db: Db): () => Promise<string | undefined> {
  let asked: Promise<string | undefined> | undefined
  return () => {
    asked ??= probe(db)
      .then(
        () => undefined,
        () => 'The database is unreachable.',
      )
      .finally(() => {
        asked = undefined
      })
    return asked
  }
}

/** What `/status` on the public port says: the chains and which of them are not tracked. */
export function createPublicStatus(options: {
  current: () => Pick<Config, 'chains'>
  version: string
  isStopping: () => boolean
  problems: Wallets['problems']
}): () => Record<string, unknown> {
  const { current, version, isStopping, problems } = options
  return () => {
    const chains = Object.fromEntries(
      Object.entries(current().chains).map(([tag, { kind, default_network, networks }]) => [
        tag,
        { kind, default_network, networks: Object.keys(networks) },
      ]),
    )
    const status = isStopping() ? 'stopping' : problems().length > 0 ? 'degraded' : 'ok'
    return { status, version, chains }
  }
}

/**
 * Says of each network that is not tracked why, for the banner. Of one that an earlier start recorded too: this
 * start may not have noticed yet.
 */
export const listUntracked = async (
  db: Db,
  problems: ReturnType<Wallets['problems']>,
): Promise<string[]> => {
  const { open } = await listEvents(db, shownEvents).catch(() => ({ open: [] }))
  const recorded = open
    .filter(({ kind }) => kind !== 'gap')
    .map(({ detail: problem, ...event }) => ({ ...event, problem }))
  const nameOf = ({ chain, network }: { chain: string; network: string }) => `${chain}/${network}`
  // What this start has noticed replaces the record of an earlier one.
  const all = new Map([...recorded, ...problems].map((one) => [nameOf(one), one.problem]))
  return [...all].sort().map(([name, problem]) => `${name}: ${problem}`)
}

/** Describes the service for `/status` of the operator: no secrets, nothing of any organization. */
export function createStatus(options: {
  current: () => Pick<Config, 'chains' | 'source'>
  /** What the last reload of the configuration did. */
  lastReload?: () => object | undefined
  db: Db
  roles: readonly string[]
  /** Absent where no requests are served. */
  limiter?: Pick<Limiter, 'status'> | undefined
  networks?: Pick<Networks, 'status'> | undefined
  /** WebSockets by the path of their network. */
  connections?: () => ReadonlyMap<string, number> | undefined
  wallets?: Pick<Wallets, 'status' | 'nodes'> | undefined
  queries?: Pick<Query, 'status'> | undefined
  courier?: Pick<Courier, 'status'> | undefined
  clock: Clock
  version: string
  database: 'embedded' | 'server'
}): () => Promise<Record<string, unknown>> {
  const { current, db, limiter, networks, wallets, courier, clock, version, database } = options
  const begun = clock.now()
  return async () => {
    const running = nodesByChain(networks?.status(options.connections?.()), wallets?.nodes())
    const pending = options.queries?.status() ?? {}
    const server_version = await probe(db).catch(() => undefined)
    // The gaps are rows: skipped while the database does not answer.
    const tracking = server_version === undefined ? {} : ((await wallets?.status()) ?? {})
    const events =
      server_version === undefined
        ? undefined
        : await listEvents(db, shownEvents).catch(() => undefined)
    const { chains, source } = current()
    const last_reload = options.lastReload?.()
    return {
      version,
      roles: options.roles,
      start_time: toTimestamp(begun),
      uptime_seconds: Math.floor((clock.now() - begun) / 1000),
      database: {
        mode: database,
        reachable: server_version !== undefined,
        ...(server_version !== undefined && { server_version }),
        schema_version: await schemaVersion(),
      },
      configuration: {
        ...(source.file !== undefined && { file: source.file }),
        ...(last_reload && { last_reload }),
      },
      ...(events && {
        events: { open: events.open.map(eventOf), resolved: events.resolved.map(eventOf) },
      }),
      ...(limiter && { limits: limiter.status() }),
      ...(courier && { webhooks: courier.status() }),
      chains: Object.fromEntries(
        Object.entries(chains).map(([tag, { kind, default_network, networks }]) => [
          tag,
          {
            kind,
            default_network,
            networks: Object.keys(networks),
            ...(running[tag] && { nodes: running[tag] }),
            ...named('tracking', tracking[tag], default_network),
            ...named('pending_transactions', pending[tag], default_network),
          },
        ]),
      ),
    }
  }
}

/**
 * The nodes of every network, in one place for all families: those of EVM networks belong to the gateway, the others
 * to the chain that is tracked. Neither needs the database, so that nodes are shown while it is unreachable.
 */
const nodesByChain = (
  ofGateway: Record<string, Record<string, NodesStatus>> = {},
  ofTracking: ReturnType<Wallets['nodes']> = [],
): Record<string, Record<string, NodesStatus>> => {
  const chains = { ...ofGateway }
  for (const { chain, network, chain_id, head, upstreams } of ofTracking)
    if (upstreams.length > 0)
      chains[chain] = {
        ...chains[chain],
        [network]: { state: 'active', chain_id, head, upstreams },
      }
  return chains
}

/** What is said of the default network under its name, and of the other networks by theirs. */
const named = (name: string, byNetwork: Record<string, unknown> | undefined, main: string) => {
  const { [main]: own, ...others } = byNetwork ?? {}
  return {
    ...(own !== undefined && { [name]: own }),
    ...(Object.keys(others).length > 0 && { [`${name}_of_networks`]: others }),
  }
}

/** An operational event as `/status` shows it. */
export type ShownEvent = {
  kind: string
  chain: string
  network: string
  subject: string
  detail: string
  create_time: string
  resolve_time: string | null
}

const eventOf = (row: ListedEventRow): ShownEvent => ({
  kind: row.kind,
  chain: row.chain,
  network: row.network,
  subject: row.subject,
  detail: row.detail,
  create_time: toTimestamp(row.create_time),
  resolve_time: row.resolve_time && toTimestamp(row.resolve_time),
})

async function probe(db: Db): Promise<string> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new Error(`no answer within ${probeTimeoutMs} ms`)),
    probeTimeoutMs,
  )
  try {
    const answer = sql<{ server_version: string }>`show server_version`.execute(db)
    const { rows } = await Promise.race([answer, late.promise])
    return rows[0]?.server_version ?? ''
  } finally {
    clearTimeout(timer)
  }
}
