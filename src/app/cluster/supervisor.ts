// Several processes as one service: one command, one log, one port, one place for the operator. The supervisor opens the
// database, starts and replaces processes, owns the limits that they share, and adds up what they show. It uses the app,
// which runs in each process with some of the roles. A service that grows by itself begins with the whole app in the
// process of the supervisor, and replaces it by processes when it is busy.

import { createLimiter } from '../../domain/limits/limiter.ts'
import { createSliceOwner, type SliceAsk } from '../../domain/limits/slice-owner.ts'
import { createUsageStore } from '../../domain/limits/stored-usage.ts'
import { systemClock, toTimestamp } from '../../lib/clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { findFreePort, tryListen } from '../../lib/net/try-listen.ts'
import { openDatabase } from '../../storage/pg/database.ts'
import { adminListenFault, startAdminListener } from '../admin-listener.ts'
import type { AppOptions, RunningService } from '../app.ts'
import { warnOfDevelopment } from '../bootstrap.ts'
import { resolveChains } from '../config/resolve.ts'
import type { Config } from '../config/schema.ts'
import { removeConnectionFile, writeConnectionFile } from '../connection-file.ts'
import { openDataDir, openServer } from '../data-directory.ts'
import { connectedChains } from '../described-chains.ts'
import { type FilterCall, filterGone } from '../filter-peers.ts'
import type { Own } from '../lifetime.ts'
import { addEnded, mergeMetrics } from '../metrics/merge.ts'
import type { MetricFamily } from '../metrics/render.ts'
import { mergeLive } from '../reload/difference.ts'
import { createReloader } from '../reload/reload.ts'
import { rereadConfig } from '../reload/reread.ts'
import type { Channel, Handlers } from './channel.ts'
import { type Crew, type ShownProcess, startCrew } from './crew.ts'
import { createRoom, type GrowthRule, watchLoad } from './growth.ts'
import { createJointReload } from './joint-reload.ts'
import type { Member } from './member.ts'
import { mergeStatus } from './merge-status.ts'
import type { StartMessage } from './messages.ts'
import { createNetworkBoard } from './network-board.ts'
import { growsByItself, type PartPlan, requestRoles, sharesPort, workersOf } from './part.ts'
import { wholeSlot } from './slots.ts'

// A process that does not answer in time is left out of the view, not waited for.
const viewTimeoutMs = 10_000
const profileMarginMs = 10_000

/** Starts the processes of a service. */
export async function startSupervisor(
  options: Omit<AppOptions, 'part' | 'local' | 'places'> & {
    signal?: AbortSignal
    growth?: GrowthRule
  },
): Promise<RunningService> {
  const { env, cwd, log, version, clock = systemClock, ids = systemIds } = options
  // The configuration as it was read goes to the processes, which resolve it themselves: with `running`, in which secrets
  // are resolved, they would travel over the pipe.
  const workers = workersOf(options.config)
  let raw = options.config
  const begun = clock.now()
  await using starting = new AsyncDisposableStack()
  const own: Own = (part) => {
    starting.defer(() => part.stop())
    return part
  }
  const early = options.server
  // First: it has to stop also where the start fails before the database is used.
  if (early) own({ stop: async () => await (await early.catch(() => undefined))?.stop() })
  // Loading the app keeps this thread busy for 600 ms. The database starts meanwhile.
  const loaded = growsByItself(raw) ? import('./inside.ts') : undefined
  loaded?.catch(() => {})
  const started = resolveChains(raw, env)
  let running = started
  const dataDir = await openDataDir(raw, env, cwd)
  // Found here, once, instead of by every process after it has connected to the database.
  const fault = (await tryListen(raw.server.host, raw.server.port)) ?? (await adminListenFault(raw))
  if (fault) throw fault
  // Node passes connections on by the port that a process asks for: all have to ask for the same one, and not for any.
  const passedOn = sharesPort(raw)
    ? undefined
    : raw.server.port || (await findFreePort(raw.server.host))
  const server = await (early ?? openServer(raw, { dataDir, env, log }).then(own))
  // A file that a killed service left behind would lead scripts to a port on which nothing listens.
  await removeConnectionFile(dataDir)

  // With Redis the processes share the windows through it, and nothing is granted.
  const { replicas } = raw.limits
  const isGranted = raw.redis.url === undefined
  const database = own(openDatabase({ connection: server.connection, log, max: 2 }))
  const limiter = own(createLimiter({ clock, log, store: createUsageStore(database.db), replicas }))
  const owner = createSliceOwner({ limiter, holders: workers, replicas })

  // Counters of ended processes are kept, so that totals of the service never decrease.
  let ended: MetricFamily[] = []
  const lastMetrics = new Map<number, MetricFamily[]>()
  const board = createNetworkBoard()
  const joint = createJointReload()
  const inTurn = createTurns()
  // Longer than a process takes for its own stop: only one that hangs is killed.
  const stopTimeoutMs = raw.server.shutdown_timeout_seconds * 1000 + 10_000
  // One of them, and both while the service grows.
  let inside: Member | undefined
  let crew: Crew | undefined
  const members = () => [...(crew?.members() ?? []), ...(inside ? [inside] : [])]

  const messageOf = (plan: PartPlan, port: number | undefined): StartMessage => ({
    ...{ plan, config: raw, cwd, version },
    isGranted: isGranted && plan.name !== background && plan.name !== whole,
    port: plan.name === background ? 0 : (passedOn ?? port ?? raw.server.port),
    server: { mode: server.mode, connection: server.connection, direct: server.direct },
    reusePort: sharesPort(raw) && plan.name !== background,
  })
  const handlersOf = (
    { slot, name }: PartPlan,
    process: Pick<Channel, 'ask' | 'post'>,
  ): Handlers => ({
    ...board.handlersOf(slot, process, { isServing: name !== background }),
    ready: () => joint.ready(slot),
    slices: (asks: readonly SliceAsk[]) =>
      Promise.all(asks.map((ask) => owner.ask(`${slot}`, ask))),
    // A filter lives in the process that made it; its id names the slot, so that any process can serve its polls.
    filter: ({ slot: holder, call }: { slot: number; call: FilterCall }) =>
      members()
        .find(({ plan }) => plan.slot === holder)
        ?.ask('filter', call) ?? filterGone,
  })
  const onEnded = ({ slot }: PartPlan) => {
    board.gone(slot)
    // What it counted after the last scrape is lost; the supervisor has no more of it.
    ended = addEnded(ended, lastMetrics.get(slot) ?? [])
    lastMetrics.delete(slot)
    owner
      .leave(`${slot}`)
      .catch((error: unknown) => log.error({ err: error }, 'counting calls failed'))
  }
  const openCrew = (count: number, port?: number) =>
    startCrew({
      plans: plansOf(raw, count),
      ...{ clock, log, stopTimeoutMs, signal: options.signal },
      messageOf: (plan, chosen) => messageOf(plan, chosen ?? port),
      ...{ handlersOf, onEnded },
    })

  /** The whole app in this process. */
  const openInside = async () => {
    const plan = { name: whole, roles: raw.server.roles, shares: 1, callers: 1, slot: wholeSlot }
    const { startInside } = await (loaded ?? import('./inside.ts'))
    const { member, started } = await startInside(messageOf(plan, undefined), {
      ...{ ...options, env, log },
      limiter: isGranted
        ? {
            ...{ take: owner.take, flush: limiter.flush, status: limiter.status },
            // The supervisor needs it after the app.
            stop: limiter.flush,
          }
        : undefined,
      handlersOf: (process) => handlersOf(plan, process),
    })
    inside = member
    void member.ended.then(() => onEnded(plan))
    return started
  }

  /** Continues in several processes. They serve before the app in this process ends. */
  const room = createRoom({ workers, log })
  const grow = async (port: number): Promise<boolean> => {
    const count = room()
    if (count === undefined) return false
    log.info({ workers: count }, 'the service is busy and continues in several processes')
    // After an attempt whose app did not retire in time, the processes are there already.
    crew ??= await openCrew(count, port)
    const last = await inside?.ask<MetricFamily[]>('metrics').catch(() => undefined)
    if (last) lastMetrics.set(wholeSlot, last)
    await inside?.stop('retire', stopTimeoutMs)
    inside = undefined
    log.info({ workers: count }, 'the service runs in several processes')
    return true
  }

  own({
    stop: async () => {
      // A growth that is under way ends by the signal, or is complete.
      await inTurn(async () => {})
      await Promise.all([crew?.stop(), inside?.stop('stop', stopTimeoutMs)])
    },
  })
  const opened = growsByItself(raw)
    ? await openInside()
    : await openCrew(workers).then((all) => {
        crew = all
        return all.started
      })
  // Here, because a process that is started later would say it again.
  await warnOfDevelopment(raw, { db: database.db, log, hasLocalChains: false })
  if (inside) {
    const { growth: rule } = options
    own(watchLoad({ log, rule, grow: () => inTurn(() => grow(opened.port)) }))
  }

  /** What each process answers; without those that do not. */
  const gather = async <answer>(kind: string) => {
    const all = await Promise.all(
      members().map(async (member) => ({
        member,
        answer: await member.ask<answer>(kind, undefined, viewTimeoutMs).catch(() => undefined),
      })),
    )
    return all.flatMap(({ member, answer }) => (answer === undefined ? [] : [{ member, answer }]))
  }

  const metrics = async (accept: string | undefined) => {
    const found = await gather<MetricFamily[]>('metrics')
    for (const { member, answer } of found) lastMetrics.set(member.plan.slot, answer)
    const running = found.map(({ member, answer }) => ({
      ...{ process: member.plan.name, families: answer },
    }))
    return mergeMetrics([...running, { process: 'ended', families: ended }], accept)
  }

  const status = async () => {
    const found = await gather<Record<string, unknown>>('status')
    const processes = found.map(({ member, answer }) => ({
      name: member.plan.name,
      status: answer,
    }))
    const merged = mergeStatus(processes)
    const last_reload = reloader.last()
    const { file } = running.source
    return {
      ...merged,
      version,
      roles: raw.server.roles,
      start_time: toTimestamp(begun),
      uptime_seconds: Math.floor((clock.now() - begun) / 1000),
      configuration: { ...(file !== undefined && { file }), ...(last_reload && { last_reload }) },
      ...(isGranted && { limits: limiter.status() }),
      processes: [...(crew?.list() ?? []), ...(inside ? [shown(inside)] : [])],
    }
  }

  const reloader = createReloader({
    ...{ clock, log },
    read: () => rereadConfig(options),
    current: () => running,
    // The processes change together: each of them first says that it can, and then all do.
    apply: (next) =>
      inTurn(async () => {
        const sent = options.reread?.() ?? next
        await joint.run(members(), sent, () => {
          running = mergeLive(started, next)
          raw = mergeLive(options.config, sent)
          options.setLogLevel?.(running.logging.level)
        })
        await writeConnection()
      }),
    onReloaded: () => {},
  })

  const profile = async (
    kind: string,
    { seconds, process: name }: { seconds: number; process?: string | undefined },
  ) => {
    const isAsked = ({ plan }: Member) =>
      name === undefined ? plan.name !== background : plan.name === name
    const found = members().find(isAsked)
    if (!found) throw new Error('There is no such process.')
    return await found.ask<string>('profile', { kind, seconds }, seconds * 1000 + profileMarginMs)
  }
  const admin = await startAdminListener(
    raw,
    { status, metrics, profile, reload: reloader.reload },
    { log, ids, onFinished: () => {}, shutdownTimeoutMs: 1_000 },
  )
  if (admin) own(admin)
  const { base_url, ws_url, port, demo } = opened
  const writeConnection = () =>
    writeConnectionFile(dataDir, {
      ...{ base_url, ws_url, ...(admin && { admin_url: admin.admin_url }), ...demo },
      chains: connectedChains(running),
    })
  const connectionFile = await writeConnection()
  starting.defer(() => removeConnectionFile(dataDir))
  own(reloader)

  const parts = starting.move()
  let stopped: Promise<void> | undefined
  return {
    ...{ base_url, ws_url, port, dataDir, connectionFile, demo, database: server.mode },
    admin_url: admin?.admin_url,
    sign_in_url: undefined,
    reload: reloader.reload,
    untracked: async () => (await gather<string[]>('untracked'))[0]?.answer ?? [],
    drain: async () => {
      await Promise.all(
        members()
          .filter(({ plan }) => plan.name !== background)
          .map((member) => member.ask('drain', undefined, stopTimeoutMs).catch(() => {})),
      )
    },
    stop: () => {
      stopped ??= parts.disposeAsync()
      return stopped
    },
  }
}

const background = 'background'
// All roles in the process of the supervisor.
const whole = 'service'

const shown = ({ plan: { name, roles }, pid, started_time }: Member): ShownProcess => ({
  ...{ name, roles, state: 'running', pid: pid ?? null, restarts: 0 },
  start_time: toTimestamp(started_time),
})

/** Runs one work after the other: a reload reaches all processes, also those that are being started. */
function createTurns() {
  let last: Promise<unknown> = Promise.resolve()
  return <result>(work: () => Promise<result>): Promise<result> => {
    const next = last.then(work, work)
    last = next.catch(() => {})
    return next
  }
}

/** One process for the work that no request waits for, where there is any, and those that serve requests. */
function plansOf({ server }: Config, workers: number): Omit<PartPlan, 'slot'>[] {
  const isRequest = (role: PartPlan['roles'][number]) => requestRoles.includes(role)
  const others = server.roles.filter((role) => !isRequest(role))
  const own = server.roles.filter(isRequest)
  const callers = workers + (others.length > 0 ? 1 : 0)
  return [
    ...(others.length > 0 ? [{ name: background, roles: others, shares: 1, callers }] : []),
    ...Array.from({ length: workers }, (_, index) => ({
      ...{ name: `worker-${index + 1}`, roles: own, shares: workers, callers },
    })),
  ]
}
