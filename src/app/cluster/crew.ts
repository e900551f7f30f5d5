// Starts the processes of a service and replaces those that end. The first two start one after the other: the background
// process, which comes first where there is one, migrates the database, and the first worker chooses the port that the
// others share.

import type { Clock } from '../../lib/clock.ts'
import { toTimestamp } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { ServerRole } from '../config/server-roles.ts'
import type { Channel, Handlers } from './channel.ts'
import { type Member, startMember } from './member.ts'
import type { StartedMessage, StartMessage } from './messages.ts'
import { type PartPlan, requestRoles } from './part.ts'
import { createSlots } from './slots.ts'

/** A process as the operator sees it. */
export type ShownProcess = {
  name: string
  roles: readonly ServerRole[]
  state: 'running' | 'starting'
  pid: number | null
  start_time: string | null
  restarts: number
}

/** The processes of a service. */
export type Crew = {
  started: StartedMessage
  members(): Member[]
  list(): ShownProcess[]
  stop(): Promise<void>
}

/** What a crew is made of. */
export type CrewOptions = {
  /** In the order of their start: each of the first two is waited for. */
  plans: readonly Omit<PartPlan, 'slot'>[]
  /** What a process is started with; the port is that of the first one that serves requests. */
  messageOf(plan: PartPlan, port: number | undefined): StartMessage
  /** Answers what a process asks for. */
  handlersOf(plan: PartPlan, process: Pick<Channel, 'ask' | 'post'>): Handlers
  /** A process has ended, by plan or not, whether or not it ever ran. */
  onEnded(plan: PartPlan): void
  clock: Clock
  log: Log
  stopTimeoutMs: number
  signal?: AbortSignal | undefined
}

type Place = {
  plan: Omit<PartPlan, 'slot'>
  member: Member | undefined
  restarts: number
  failures: number
  isReplacing: boolean
}

// The pause before a restart doubles from the first to the last, and is short again after a steady
// minute.
const firstPauseMs = 100
const lastPauseMs = 10_000
const steadyMs = 60_000
const groupSignalMs = 200

/** Starts all processes, and from then on replaces each that ends. */
export async function startCrew(options: CrewOptions): Promise<Crew> {
  const { plans, messageOf, handlersOf, onEnded, clock, log, stopTimeoutMs } = options
  const stopping = new AbortController()
  const leaving = new Set<Member>()
  const places = plans.map(
    (plan): Place => ({
      ...{ plan, member: undefined, restarts: 0, failures: 0, isReplacing: false },
    }),
  )
  const slots = createSlots()
  let port: number | undefined
  let first: StartedMessage | undefined

  const begin = async (place: Place): Promise<void> => {
    const plan: PartPlan = { ...place.plan, slot: slots.take() }
    const signal = options.signal
      ? AbortSignal.any([options.signal, stopping.signal])
      : stopping.signal
    const { member, started } = await startMember(messageOf(plan, port), {
      ...{ log, signal },
      handlersOf: (process) => ({
        ...handlersOf(plan, process),
        terminate: () => void replace(place),
      }),
      onEnded: () => onEnded(plan),
      hasOthers: () => members().some((one) => one.plan.slot !== plan.slot && isServing(one.plan)),
    }).catch((error: unknown) => {
      slots.release(plan.slot)
      throw error
    })
    void member.ended.then(() => slots.release(plan.slot))
    // Of the processes that serve requests: the first one chooses the port.
    if (isServing(place.plan)) {
      port ??= started.port
      first ??= started
    }
    place.member = member
    void member.ended.then(({ code, signal }) => {
      leaving.delete(member)
      if (place.member !== member) return
      place.member = undefined
      if (stopping.signal.aborted) return
      log.error({ process: plan.name, code, signal }, 'a process has ended and is replaced')
      place.failures = clock.now() - member.started_time > steadyMs ? 0 : place.failures + 1
      void beginAgain(place)
    })
  }

  const beginAgain = async (place: Place): Promise<void> => {
    place.restarts++
    while (!stopping.signal.aborted) {
      const pauseMs = Math.min(lastPauseMs, firstPauseMs * 2 ** Math.max(0, place.failures - 1))
      await clock.sleep(pauseMs, stopping.signal).catch(() => {})
      if (stopping.signal.aborted) return
      try {
        await begin(place)
        log.info({ process: place.plan.name }, 'a process was replaced')
        return
      } catch (error) {
        place.failures++
        if (!stopping.signal.aborted)
          log.error(
            { err: error, process: place.plan.name },
            'starting a process failed, will retry',
          )
      }
    }
  }

  /** By plan: the next one serves before this one ends. */
  const replace = async (place: Place): Promise<void> => {
    const { member } = place
    if (!member || place.isReplacing || stopping.signal.aborted) return
    place.isReplacing = true
    try {
      // A signal to all processes of a group stops the service, and reaches this one a moment later.
      await clock.sleep(groupSignalMs, stopping.signal)
      log.info({ process: place.plan.name }, 'a process is replaced by plan')
      leaving.add(member)
      await begin(place)
      place.restarts++
      await member.stop('retire', stopTimeoutMs)
    } catch (error) {
      leaving.delete(member)
      if (!stopping.signal.aborted)
        log.error({ err: error, process: place.plan.name }, 'replacing a process failed')
    } finally {
      place.isReplacing = false
    }
  }

  // Processes that are leaving still serve, so they count until they have ended.
  const members = () => [
    ...places.flatMap(({ member }) => member ?? []),
    ...leaving.values().filter((one) => places.every(({ member }) => member !== one)),
  ]

  const stop = async (): Promise<void> => {
    stopping.abort()
    const all = members()
    // Those that serve requests first: what they wait for is still done meanwhile.
    for (const some of [
      all.filter(({ plan }) => isServing(plan)),
      all.filter(({ plan }) => !isServing(plan)),
    ])
      await Promise.all(some.map((one) => one.stop('stop', stopTimeoutMs)))
  }

  try {
    // The first two in turn: the background process migrates the database, and the first worker
    // chooses the port.
    const [one, two, ...others] = places
    if (one) await begin(one)
    if (two) await begin(two)
    await Promise.all(others.map(begin))
    if (!first) throw new Error('No process serves requests.')
  } catch (error) {
    await stop()
    throw error
  }
  return {
    started: first,
    members,
    list: () =>
      places.map(({ plan: { name, roles }, member, restarts }) => ({
        ...{ name, roles, restarts },
        state: member ? 'running' : 'starting',
        pid: member?.pid ?? null,
        start_time: member ? toTimestamp(member.started_time) : null,
      })),
    stop,
  }
}

const isServing = ({ roles }: Pick<PartPlan, 'roles'>): boolean =>
  roles.some((role) => requestRoles.includes(role))
