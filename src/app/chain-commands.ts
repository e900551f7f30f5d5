import type { Chain } from '../chains/chain.ts'
import type { Chains, OpenChain } from '../domain/context.ts'
import { systemClock } from '../lib/clock.ts'
import { systemIds } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { notifyChange } from '../storage/pg/changes.ts'
import type { Db } from '../storage/pg/database.ts'
import { findCursor } from '../storage/tracking/blocks.ts'
import { ensureNetwork, type NetworkName } from '../storage/tracking/networks.ts'
import {
  type BackfillOptions,
  type BackfillOutcome,
  runBackfill,
} from '../workers/tracker/backfill.ts'
import { planRewind, type RewindPlan, runRewind } from '../workers/tracker/rewind.ts'
import { placesOf } from './chain-openers.ts'
import type { Env } from './config/problem.ts'
import { resolveChains } from './config/resolve.ts'
import type { Config } from './config/schema.ts'
import { InstallationError } from './installation.ts'
import { openNetworks } from './networks.ts'

/** What a command needs to work on a chain. */
export type ChainTools = { db: Db; env: Env; log: Log; at: { chain: string; network?: string } }

/** Opens a configured chain beside the service for as long as it is used. */
export async function withChain<result>(
  raw: Config,
  { db, env, log, at }: ChainTools,
  use: (opened: { network_id: number; network: string; chain: Chain }) => Promise<result>,
): Promise<result> {
  const config = resolveChains(raw, env)
  const clock = systemClock
  // The same code as in the service, without the gateway: no usage is counted for a command.
  const networks = openNetworks(config, { env, log, clock, ids: systemIds, spill: () => {} })
  try {
    const place = placesOf(config, { env, clock, log, networks }).find(
      ({ chain, network, isDefault }) =>
        chain === at.chain && (at.network === undefined ? isDefault : network === at.network),
    )
    if (!place)
      throw new InstallationError(`The chain "${Object.values(at).join('/')}" is not configured.`)
    const { network } = place
    const chain = await place.open()
    try {
      const create_time = new Date(clock.now())
      const network_id = await ensureNetwork(db, {
        ...{ chain: at.chain, network, create_time, is_default: place.isDefault },
        variants: place.variants ?? '',
      })
      return await use({ network_id, network, chain })
    } finally {
      await chain.stop()
    }
  } finally {
    await networks.stop()
  }
}

// The tracker of a running service begins within one block of its chain.
const beginTimeoutMs = 15_000
const beginPollMs = 100

/**
 * The chains of a configuration for the operations of a command; each is opened when it is first needed. A network that
 * is not tracked yet is announced to the running service, and used when that has stored its first block.
 */
export function openCommandChains(
  raw: Config,
  { db, env, log }: Omit<ChainTools, 'at'>,
): { chains: Chains; stop(): Promise<void> } {
  const config = resolveChains(raw, env)
  const clock = systemClock
  const networks = openNetworks(config, { env, log, clock, ids: systemIds, spill: () => {} })
  const places = placesOf(config, { env, clock, log, networks })
  const opened = new Map<string, OpenChain>()
  // Without a network the default one is meant, as in addresses of the API.
  const placeOf = (chain: string, network?: string) =>
    places.find(
      (one) =>
        one.chain === chain && (network === undefined ? one.isDefault : one.network === network),
    )
  const pathOf = (place: NetworkName) => `${place.chain}/${place.network}`
  const open = async (chain: string, network?: string): Promise<OpenChain | undefined> => {
    const place = placeOf(chain, network)
    if (!place) return undefined
    const known = opened.get(pathOf(place))
    if (known) return known
    // Registered in the database before it is waited for, because the tracker looks it up there.
    const name = { chain: place.chain, network: place.network }
    const network_id = await ensureNetwork(db, {
      ...{ ...name, create_time: new Date(clock.now()), is_default: place.isDefault },
      variants: place.variants ?? '',
    })
    await waitForTracking(db, { network_id, ...name })
    const found = { network_id, name, chain: await place.open() }
    opened.set(pathOf(place), found)
    return found
  }
  return {
    chains: {
      find: (chain, network) => {
        const place = placeOf(chain, network)
        return place && opened.get(pathOf(place))
      },
      open,
      defaultOf: (chain) => placeOf(chain)?.network,
    },
    stop: async () => {
      for (const { chain } of opened.values()) await chain.stop()
      await networks.stop()
    },
  }
}

/** A deposit between a registration and the first tracked block would be missed, so the block comes first. */
async function waitForTracking(
  db: Db,
  { network_id, chain, network }: NetworkName & { network_id: number },
): Promise<void> {
  const deadline = systemClock.now() + beginTimeoutMs
  for (let isAnnounced = false; !(await findCursor(db, network_id)); isAnnounced = true) {
    if (!isAnnounced) await notifyChange(db, { kind: 'track', chain, network })
    if (systemClock.now() > deadline)
      throw new InstallationError(
        `No service tracks ${chain}/${network} yet, so nothing was registered there. Start the service, and run the command again.`,
      )
    await systemClock.sleep(beginPollMs)
  }
}

/** Opens a configured chain beside the service and indexes its history. */
export const backfillChain = (
  config: Config,
  tools: ChainTools,
  range: Pick<BackfillOptions, 'from' | 'to' | 'signal' | 'onProgress'>,
): Promise<BackfillOutcome> =>
  withChain(config, tools, ({ network_id, chain }) =>
    runBackfill({ db: tools.db, clock: systemClock, network_id, chain, ...range }),
  )

/** Opens a configured chain beside the service and retracts what is above a block, if that is agreed to. */
export const rewindChain = (
  config: Config,
  tools: ChainTools,
  { to, signal }: { to: number; signal: AbortSignal },
  agree: (plan: RewindPlan, network: string) => boolean,
): Promise<boolean> =>
  withChain(config, tools, async ({ network_id, network, chain }) => {
    const options = { db: tools.db, clock: systemClock, network_id, chain, to, signal }
    const plan = await planRewind(options)
    if (!agree(plan, network)) return false
    await runRewind(options, plan)
    return true
  })
