// Metrics that need the database. They are read with a time limit of 2 s and kept for 10 s, so that several scrapers cost
// one query.

import { statfs } from 'node:fs/promises'
import { hostname } from 'node:os'
import type { Registry } from 'prom-client'
import {
  countDisabledWebhooks,
  countQueues,
  listHeldLeases,
  mostCounted,
} from '../../storage/metrics/counts.ts'
import type { Db } from '../../storage/pg/database.ts'
import { show } from './show.ts'

/** What the metrics need of the installation. */
export type InstallationView = {
  db: Db
  dataDir: string
  /** Whether a holder of leases is one of this process. */
  isOwn(holder: string): boolean
}

type Counts = {
  queues: Record<string, number>
  disabled: { chain: string; network: string; count: number }[]
  leases: { name: string; holder: string }[]
}

const nothing: Counts = { queues: {}, disabled: [], leases: [] }
const longestMs = 2_000
// Several scrapers must not make the database count again and again.
const keptMs = 10_000

/** Exports what only the database and the disk know. */
export function registerInstallationMetrics(registry: Registry, view: InstallationView): void {
  const { db, dataDir, isOwn } = view
  const processName = `${hostname()}:${process.pid}`
  const look = shared(async (): Promise<Counts> => {
    const [queues, disabled, leases] = await Promise.all([
      countQueues(db),
      countDisabledWebhooks(db),
      listHeldLeases(db),
    ])
    return { queues, disabled, leases }
  })
  show(
    registry,
    'gauge',
    {
      name: 'portolan_queue_rows',
      help: `Rows that wait in the database, of all processes; at most ${mostCounted} of a queue are counted.`,
      labelNames: ['queue'],
    },
    async () =>
      Object.entries((await look()).queues).map(([queue, value]) => ({ labels: { queue }, value })),
  )
  show(
    registry,
    'gauge',
    {
      name: 'portolan_webhooks_disabled',
      help: 'Webhooks that are disabled, of all organizations.',
      labelNames: ['chain', 'network'],
    },
    async () =>
      (await look()).disabled.map(({ chain, network, count: value }) => ({
        labels: { chain, network },
        value,
      })),
  )
  show(
    registry,
    'gauge',
    {
      name: 'portolan_lease_held',
      help: '1 for every lease that this process holds, with the name of the process.',
      labelNames: ['lease', 'holder'],
    },
    async () =>
      (await look()).leases
        .filter(({ holder }) => isOwn(holder))
        .map(({ name: lease }) => ({ labels: { lease, holder: processName }, value: 1 })),
  )
  const disk = (name: string, help: string, pick: 'bavail' | 'blocks') =>
    show(registry, 'gauge', { name, help }, async () => {
      const space = await statfs(dataDir).catch(() => undefined)
      return space ? [{ labels: {}, value: space[pick] * space.bsize }] : []
    })
  disk(
    'portolan_disk_free_bytes',
    'Free space of the disk that holds the data directory, with the embedded database.',
    'bavail',
  )
  disk('portolan_disk_size_bytes', 'Size of the disk that holds the data directory.', 'blocks')
}

/** One look for all metrics of a scrape; empty where the database does not answer in time. */
function shared(count: () => Promise<Counts>): () => Promise<Counts> {
  let last: { time: number; counts: Promise<Counts> } | undefined
  return () => {
    const now = performance.now()
    if (!last || now - last.time > keptMs) last = { time: now, counts: within(count) }
    return last.counts
  }
}

async function within(count: () => Promise<Counts>): Promise<Counts> {
  const late = Promise.withResolvers<Counts>()
  const timer = setTimeout(() => late.resolve(nothing), longestMs)
  try {
    return await Promise.race([count().catch(() => nothing), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
