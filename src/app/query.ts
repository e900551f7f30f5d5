// Builds the port `QuerySource` of the domain on a network of the gateway: the domain may not import the gateway
// (docs/architecture.md, "Layers"), so the two are joined here.

import type { Queries } from '../domain/context.ts'
import type { QuerySource } from '../domain/query/source.ts'
import { createRest, type Rest } from '../gateway/rest.ts'
import type { Answer } from '../gateway/rpc/answer.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Db } from '../storage/pg/database.ts'
import { ensureNetwork, type NetworkName } from '../storage/tracking/networks.ts'
import { type PendingStatus, startPendingRecorder } from '../workers/pending/pending.ts'
import type { Config } from './config/schema.ts'
import { type EvmSettings, variantsOf } from './config/sections/chains.ts'
import type { Stoppable } from './lifetime.ts'
import type { Networks } from './networks.ts'

/** The networks that offer the chain queries. */
export type Query = Queries & {
  /** Of the recorders of pending transactions, by chain and network. */
  status(): Record<string, Record<string, PendingStatus>>
  /**
   * Offers the queries of these networks from now on. Networks that stay the same object stay open; what was opened
   * for others is returned to be stopped after the calls that use it.
   */
  replace(config: Pick<Config, 'chains'>, replaced: readonly NetworkName[]): Promise<Stoppable>
  stop(): Promise<void>
}

type Tools = { db: Db; clock: Clock; log: Log; networks: Networks }
type Opened = {
  source: QuerySource
  recorder: { status(): PendingStatus; stop(): Promise<void> }
  /** Closes it after a time without a query; absent where it stays open. */
  rest?: Rest
}
type Place = NetworkName & { settings: EvmSettings; isDefault: boolean; variants: string }

/** The queries of a process without the roles that answer clients. */
export const noQueries: Query = {
  find: () => undefined,
  open: async () => undefined,
  status: () => ({}),
  replace: async () => ({ stop: async () => {} }),
  stop: async () => {},
}

/**
 * Opens `q` and the default networks of the chains that record what is pending, and others at their first use. What is
 * pending on an open network is recorded. Networks that were opened for a query are closed after as long without one as
 * the gateway waits (`gateway.sleep_after_minutes`); then their nodes can be disconnected.
 */
export async function openQueries(config: Config, tools: Tools): Promise<Query> {
  let places = queryPlaces(config)
  let defaults = defaultsOf(places)
  // By place and not by name: a place that was replaced by a reload is another object.
  const opening = new Map<Place, Promise<Opened>>()
  const opened = new Map<Place, Opened>()
  const closing = new Set<Promise<void>>()
  const placeOf = (chain: string, network?: string) =>
    network === undefined ? defaults.get(chain) : places.get(`${chain}/${network}`)

  const open = (place: Place): Promise<Opened> => {
    let begun = opening.get(place)
    if (!begun) {
      begun = openSource(place, config, tools).then((source) => {
        const done = isOpenFromStart(place) ? source : { ...source, rest: restOf(place, source) }
        opened.set(place, done)
        return done
      })
      opening.set(place, begun)
      // The next call tries again.
      begun.catch(() => opening.delete(place))
    }
    return begun
  }

  const restOf = (place: Place, { recorder }: Opened): Rest => {
    const rest = createRest({
      clock: tools.clock,
      afterMs: config.gateway.sleep_after_minutes * 60_000,
      isBusy: () => false,
      wake: async () => {},
      // A query that still runs is not cut off: the nodes stay connected for the same time again.
      sleep: () => {
        rest.stop()
        opening.delete(place)
        opened.delete(place)
        const closed = recorder
          .stop()
          .catch((error: unknown) =>
            tools.log.warn({ err: error, chain: place.chain }, 'stopping the recorder failed'),
          )
          .finally(() => closing.delete(closed))
        closing.add(closed)
      },
    })
    void rest.use()
    return rest
  }
  for (const place of places.values()) if (isOpenFromStart(place)) await open(place)

  // Also those that are still being opened: they would be left running otherwise.
  const stopAll = async (begun: readonly Promise<Opened>[]) => {
    const all = await Promise.allSettled(begun)
    await Promise.all(
      all.map((each) => {
        if (each.status === 'rejected') return undefined
        each.value.rest?.stop()
        return each.value.recorder.stop()
      }),
    )
  }

  return {
    find: (chain, network) => {
      const place = placeOf(chain, network)
      const found = place && opened.get(place)
      void found?.rest?.use()
      return found?.source
    },
    open: async (chain, network) => {
      const place = placeOf(chain, network)
      if (!place) return undefined
      const { source, rest } = await open(place)
      void rest?.use()
      return source
    },
    status: () => {
      const chains: Record<string, Record<string, PendingStatus>> = {}
      for (const [{ chain, network }, { recorder }] of opened) {
        chains[chain] ??= {}
        chains[chain][network] = recorder.status()
      }
      return chains
    },
    replace: async (next, replaced) => {
      const before = places
      const isReplaced = ({ chain, network }: NetworkName) =>
        replaced.some((other) => other.chain === chain && other.network === network)
      places = queryPlaces(next)
      for (const [path, place] of places) {
        const known = before.get(path)
        if (known && !isReplaced(place)) places.set(path, known)
      }
      defaults = defaultsOf(places)
      const kept = new Set(places.values())
      const gone = [...before.values()].filter((place) => !kept.has(place))
      const wasOpen = new Set(
        gone.flatMap((place) => (opening.has(place) ? [`${place.chain}/${place.network}`] : [])),
      )
      // Opened anew under the same name, so that the recorder of an open network has no gap longer
      // than the change.
      const left = gone.flatMap((place) => opening.get(place) ?? [])
      for (const place of gone) {
        opening.delete(place)
        opened.delete(place)
      }
      for (const [path, place] of places)
        if (isOpenFromStart(place) || wasOpen.has(path))
          await open(place).catch((error: unknown) =>
            tools.log.warn({ err: error, chain: place.chain }, 'opening failed, will retry'),
          )
      return { stop: () => stopAll(left) }
    },
    stop: async () => {
      await Promise.all([stopAll([...opening.values()]), ...closing])
    },
  }
}

const isOpenFromStart = ({ chain, isDefault, settings }: Place): boolean =>
  isDefault && (chain === 'q' || settings.record_pending === true)

const defaultsOf = (places: ReadonlyMap<string, Place>): ReadonlyMap<string, Place> =>
  new Map([...places.values()].flatMap((one) => (one.isDefault ? [[one.chain, one]] : [])))

/** The networks of a configuration that offer the chain queries, by chain and network. */
const queryPlaces = ({ chains }: Pick<Config, 'chains'>): Map<string, Place> => {
  const places = new Map<string, Place>()
  for (const [chain, settings] of Object.entries(chains)) {
    const variants = variantsOf(chain, settings)
    if (settings.kind !== 'evm' || !variants.includes('Q')) continue
    for (const network of Object.keys(settings.networks))
      places.set(`${chain}/${network}`, {
        ...{ chain, network, settings, variants: variants.join('') },
        isDefault: network === settings.default_network,
      })
  }
  return places
}

async function openSource(
  { chain, network: name, settings, isDefault, variants }: Place,
  config: Config,
  { db, clock, log, networks }: Tools,
): Promise<Opened> {
  const kept = networks.keep(chain, name)
  if (!kept) throw new Error(`The network ${chain}/${name} is not open.`)
  const { network } = kept
  const { pool, view, cache } = network
  const { prefix, record_pending: listens = true } = settings
  const network_id = await ensureNetwork(db, {
    ...{ chain, network: name, variants, is_default: isDefault },
    create_time: new Date(clock.now()),
  })
  const recorder = startPendingRecorder({
    db,
    pool,
    canonical: view,
    prefix,
    network_id,
    clock,
    log,
    listens,
  })
  const unsubscribe = networks.onSent((hash, to) => {
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
  const stop = async () => {
    unsubscribe()
    kept.stop()
    await recorder.stop()
  }
  return { source, recorder: { status: recorder.status, stop } }
}

// A node that refuses such a simple call has a problem: the error is not passed on to the client.
const toSourceAnswer = ({ ok, text, refusal }: Answer) =>
  ok
    ? { ok: true as const, result: text }
    : { ok: false as const, reason: refusal?.reason ?? ('UPSTREAM_UNAVAILABLE' as const) }
