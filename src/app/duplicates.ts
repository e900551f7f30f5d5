// Finds networks of the configuration that have the nodes of another one, when the service starts. A start does not wait
// for it and never fails because of it: nodes would decide whether a service starts. A reload refuses such a
// configuration instead (`reload/identities.ts`).

import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Db } from '../storage/pg/database.ts'
import { listIdentities, type NetworkName } from '../storage/tracking/networks.ts'
import { walletServiceOf } from './chain-openers.ts'
import type { Env } from './config/problem.ts'
import type { Config } from './config/schema.ts'
import type { Stoppable } from './lifetime.ts'
import { askIdentity, type ConfiguredNetwork, mayBeSame, networksOf } from './node-identity.ts'
import { askIdentities } from './reload/identities.ts'
import type { Wallets } from './wallets.ts'

/** Compares the networks that may have the same nodes, and lets `wallets` refuse the second one of each pair. */
export function startDuplicateCheck(
  config: Pick<Config, 'chains'>,
  tools: {
    db: Db
    env: Env
    clock: Clock
    log: Log
    wallets: Pick<Wallets, 'tracked' | 'refuse'>
  },
): Stoppable {
  const { db, env, clock, log, wallets } = tools
  const stopping = new AbortController()

  const check = async (): Promise<void> => {
    const networks = networksOf(config).filter(({ chain, settings }) =>
      walletServiceOf(chain, settings),
    )
    const suspects = networks.filter((one) =>
      networks.some((other) => other !== one && mayBeSame(one, other)),
    )
    if (suspects.length === 0) return
    const stored = await listIdentities(db)
    const storedOf = (at: NetworkName) =>
      stored.find(({ chain, network }) => chain === at.chain && network === at.network)?.identity
    const asked = suspects
      .filter((one) => !storedOf(one))
      .map((one) => ({
        ...one,
        nodes: { identity: (signal: AbortSignal) => askIdentity(one, { env, clock }, signal) },
      }))
    const answers = await askIdentities(asked, stopping.signal)
    if (stopping.signal.aborted) return
    const identityOf = (at: ConfiguredNetwork) =>
      storedOf(at) ?? [...answers].find(([one]) => isSame(one, at))?.[1]
    // Those that are tracked come first, then the order of the file.
    const isFirst = (at: ConfiguredNetwork) =>
      Boolean(storedOf(at)) || wallets.tracked().some((one) => isSame(one, at))
    const ordered = [...suspects.filter(isFirst), ...suspects.filter((one) => !isFirst(one))]
    for (const [index, one] of ordered.entries()) {
      const identity = identityOf(one)
      const other = ordered.slice(0, index).find((before) => identityOf(before) === identity)
      if (identity === undefined || !other || isFirst(one)) continue
      wallets.refuse(one, { other, identity })
    }
  }

  const done = check().catch((error: unknown) =>
    log.warn({ err: error }, 'comparing the nodes of networks failed'),
  )
  return {
    stop: async () => {
      stopping.abort()
      await done
    },
  }
}

const isSame = (one: NetworkName, other: NetworkName): boolean =>
  one.chain === other.chain && one.network === other.network
