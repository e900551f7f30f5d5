import { ConfigError } from '../config/problem.ts'
import type { Config } from '../config/schema.ts'
import type { ReloadOutcome } from '../reload/reload.ts'
import type { Member } from './member.ts'

/** Reloads the configuration of several processes as one step. */
export type JointReload = {
  /** A process has checked and opened everything. Resolves when all have; rejects when one has refused. */
  ready(slot: number): Promise<void>
  /** `commit` is called when all are ready, before any process changes. Throws where nothing was changed. */
  run(
    members: readonly Pick<Member, 'plan' | 'ask'>[],
    config: Config,
    commit: () => void,
  ): Promise<void>
}

type Round = { missing: Set<number>; all: PromiseWithResolvers<void> }

/** Preparing takes a minute at most, and ending what was replaced half of one. */
export const reloadTimeoutMs = 120_000

/**
 * Makes the reload of a supervisor. Every process prepares the new configuration and waits; it changes nothing before all
 * are prepared. One that refuses or ends meanwhile makes the others drop what they have prepared.
 */
export function createJointReload(): JointReload {
  let round: Round | undefined

  const arrive = ({ missing, all }: Round, slot: number): void => {
    missing.delete(slot)
    if (missing.size === 0) all.resolve()
  }

  return {
    ready: async (slot) => {
      if (!round) throw new Error('There is no reload.')
      arrive(round, slot)
      await round.all.promise
    },
    run: async (members, config, commit) => {
      const own: Round = {
        missing: new Set(members.map(({ plan }) => plan.slot)),
        all: Promise.withResolvers<void>(),
      }
      round = own
      const committed = own.all.promise.then(commit)
      // Also where no process waits for it.
      committed.catch(() => {})
      const reload = async ({ plan, ask }: Pick<Member, 'plan' | 'ask'>): Promise<void> => {
        try {
          const { outcome, problems } = await ask<ReloadOutcome>('reload', config, reloadTimeoutMs)
          // One in which nothing differs has nothing to prepare.
          if (outcome === 'refused') own.all.reject(new ConfigError(problems))
          else arrive(own, plan.slot)
        } catch (error) {
          own.all.reject(error)
        }
      }
      await Promise.all(members.map(reload))
      round = undefined
      await committed
    },
  }
}
