// Reloads the configuration while the service runs. One reload at a time, each bounded in time; a configuration with
// an error changes nothing. It uses `app/config`; how a change is applied is in `apply.ts`.

import { type Clock, toTimestamp } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { ConfigError, type Problem } from '../config/problem.ts'
import type { Config } from '../config/schema.ts'
import { compareConfigs, type Difference, isEmpty, type NetworkAt } from './difference.ts'

/** What a reload did. */
export type ReloadOutcome = {
  /** `refused`: there are problems, and nothing was changed. */
  outcome: 'applied' | 'unchanged' | 'refused'
  time: string
  seconds: number
  /** Networks, as chain and network. */
  added: string[]
  changed: string[]
  removed: string[]
  /** Keys beside the chains that were applied, and those that wait for a restart. */
  settings: string[]
  restart: string[]
  problems: Problem[]
}

/** Reloads the configuration. */
export type Reloader = {
  /** Calls while a reload runs share the one that follows it. */
  reload(): Promise<ReloadOutcome>
  /** The last one; undefined before the first. */
  last(): ReloadOutcome | undefined
  /** Waits for the one that runs; none begins after that. */
  stop(): Promise<void>
}

/** What a reloader works with. */
export type ReloaderOptions = {
  /** Reads and checks the configuration as the start did; throws a `ConfigError`. */
  read(): Config
  current(): Config
  /** Changes what runs, or throws without having changed anything. */
  apply(next: Config, difference: Difference): Promise<void>
  clock: Clock
  log: Log
  onReloaded(outcome: ReloadOutcome): void
}

const nothing = { added: [], changed: [], removed: [], settings: [], restart: [], problems: [] }

/** Makes the reloader of a service. */
export function createReloader(options: ReloaderOptions): Reloader {
  const { read, current, apply, clock, log, onReloaded } = options
  let running: Promise<ReloadOutcome> | undefined
  let following: Promise<ReloadOutcome> | undefined
  let last: ReloadOutcome | undefined
  let isStopped = false

  const work = async (): Promise<Omit<ReloadOutcome, 'time' | 'seconds'>> => {
    if (isStopped) return refusal([{ message: 'The service is stopping.' }])
    try {
      const next = read()
      checkSource(current(), next)
      const difference = compareConfigs(current(), next)
      if (isEmpty(difference)) return { ...nothing, outcome: 'unchanged' }
      const isLive = difference.isChains || difference.settings.length > 0
      if (isLive) await apply(next, difference)
      const { added, changed, removed, settings, restart } = difference
      return {
        outcome: isLive ? 'applied' : 'unchanged',
        ...{ added: added.map(textOf), changed: changed.map(textOf), removed: removed.map(textOf) },
        ...{ settings, restart, problems: [] },
      }
    } catch (error) {
      if (error instanceof ConfigError) return refusal(error.problems)
      log.error({ err: error }, 'reload of the configuration failed')
      return refusal([{ message: error instanceof Error ? error.message : String(error) }])
    }
  }

  const run = async (): Promise<ReloadOutcome> => {
    const begun = clock.now()
    const done = await work()
    const seconds = Math.max(0, clock.now() - begun) / 1000
    last = { ...done, time: toTimestamp(begun), seconds }
    const { outcome, problems, ...changes } = last
    if (outcome === 'refused')
      log.error(
        { problems: problems.map(({ message }) => message) },
        'configuration not reloaded, nothing was changed',
      )
    else log.info({ outcome, ...changes }, 'configuration reloaded')
    if (changes.restart.length > 0)
      log.warn({ keys: changes.restart }, 'settings that were changed need a restart')
    onReloaded(last)
    return last
  }

  const reload = (): Promise<ReloadOutcome> => {
    if (!running) {
      running = run().finally(() => {
        running = undefined
      })
      return running
    }
    following ??= running.then(() => {
      following = undefined
      return reload()
    })
    return following
  }

  return {
    reload,
    last: () => last,
    stop: async () => {
      isStopped = true
      await running
      await following
    },
  }
}

/** A file that is gone or empty, as while it is being written, must not remove every chain. */
function checkSource({ source: before }: Config, { source: now }: Config): void {
  if (before.file === undefined) return
  const hasKeys = Object.values(now.origins).some(({ from }) => from === 'file')
  const hadKeys = Object.values(before.origins).some(({ from }) => from === 'file')
  const fault =
    now.file !== before.file ? 'does not exist' : hadKeys && !hasKeys ? 'is empty' : undefined
  if (fault === undefined) return
  const message = `The configuration file ${before.file} ${fault}.`
  throw new ConfigError([{ message, file: before.file }])
}

const textOf = ({ chain, network }: NetworkAt): string => `${chain}/${network}`

const refusal = (problems: readonly Problem[]) => ({
  ...nothing,
  outcome: 'refused' as const,
  problems: [...problems],
})
