// One child process, from its start to its end. It gets its configuration by message and never by arguments, which other users of
// the machine could read.

import type { ChildProcess } from 'node:child_process'
import cluster from 'node:cluster'
import { getCompileCacheDir } from 'node:module'
import { dirname, extname, join } from 'node:path'
import type { Log } from '../../lib/log.ts'
import { type Channel, createChannel, type Handlers } from './channel.ts'
import type { StartedMessage, StartMessage } from './messages.ts'
import { type PartPlan, requestRoles } from './part.ts'
import { returnPassedConnections } from './passed-connections.ts'

/** A process of the service. */
export type Member = {
  plan: PartPlan
  pid: number | undefined
  started_time: number
  ask: Channel['ask']
  /** Resolves when it has ended. */
  ended: Promise<{ code: number | null; signal: string | null }>
  /** Lets it end by itself, and ends it when it takes too long. */
  stop(how: 'stop' | 'retire', timeoutMs: number): Promise<void>
  kill(): void
}

// The package has JavaScript in place of the sources.
const program = join(import.meta.dirname, `worker${extname(import.meta.filename)}`)
// A first start fills an empty database.
const startTimeoutMs = 120_000

/**
 * V8 collects garbage with four more threads in each process, at the priority of the main thread. There are as many
 * processes as cores, so they took its core in turns of 4 ms each. With one thread a forwarded block took 101 and 81 µs of
 * CPU instead of 137 and 135 (two cores, two runs each), and the p99 of calls was a sixth to a third lower.
 */
export const oneHelper = '--v8-pool-size=1'

/**
 * By default the space for new objects grows to 32 MiB where much of it survives, and a collection then copies for up to 20 ms:
 * the addresses of subscriptions, thousands of connections. With 8 MiB the p99 of the others' operations was 3.9 ms beside
 * bodies of 4 MiB instead of 12, 4.9 beside idle connections instead of 18, 5 beside subscriptions instead of 22. A process
 * that only follows chains keeps the default: catching up took 3 % more CPU with 8 MiB, database included (12 runs of 2,000 blocks).
 */
const shortCollections = '--max-semi-space-size=8'

/** What sets the same as a flag: V8 takes `_` for `-`, and a least size is bounded by the greatest one. */
const settingOf = (flag: string): string =>
  flag.replace(/=.*/, '').replaceAll('_', '-').replace('--min-semi', '--max-semi')

/**
 * The flags of V8 for a process with these roles; those that the operator has set win. `bin/portolan.js` gives them to the
 * first process, which starts before its roles are known.
 */
export function processFlags(
  roles: PartPlan['roles'],
  // A process gets the environment of this one, and none of its other flags.
  { execArgv, options }: { execArgv: readonly string[]; options: string } = {
    execArgv: process.execArgv,
    options: process.env.NODE_OPTIONS ?? '',
  },
): readonly string[] {
  const own = [oneHelper, shortCollections]
  const settings = own.map(settingOf)
  const given = execArgv
    // Node also takes the value as an argument of its own.
    .map((flag, at) => (flag.includes('=') ? flag : `${flag}=${execArgv[at + 1]}`))
    .filter((flag) => settings.includes(settingOf(flag)) && !own.includes(flag))
  const set = [...given, ...options.split(/[\s"]+/)].map(settingOf)
  const servesRequests = roles.some((role) => requestRoles.includes(role))
  const wanted = servesRequests ? own : [oneHelper]
  return [...given, ...wanted.filter((flag) => !set.includes(settingOf(flag)))]
}

/** Starts a process and waits until it runs; rejects with the reason why it does not. */
export async function startMember(
  message: StartMessage,
  options: {
    log: Log
    /** Answers what the process asks for, also before it runs. */
    handlersOf(process: Pick<Channel, 'ask' | 'post'>): Handlers
    /** It has ended, whether or not it ever ran. */
    onEnded(): void
    /** Whether another process serves requests. */
    hasOthers(): boolean
    signal?: AbortSignal
  },
): Promise<{ member: Member; started: StartedMessage }> {
  const { log, handlersOf, onEnded, hasOthers, signal } = options
  const { plan } = message
  // A worker of a cluster: where the system does not share a port, this process passes connections on.
  cluster.setupPrimary({
    ...{ exec: program, args: [], serialization: 'advanced' },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    execArgv: ['--disable-warning=ExperimentalWarning', ...processFlags(plan.roles)],
  })
  const cache = getCompileCacheDir()
  // The folder of this version of Node is below the one that is configured.
  const child = cluster.fork(cache && { NODE_COMPILE_CACHE: dirname(cache) }).process
  returnPassedConnections(child, { hasOthers })
  const channel: Channel = createChannel({
    send: (given) => {
      // A message to a process that ends at this moment has no reader.
      if (child.connected) child.send(given, () => {})
    },
    handlers: handlersOf({
      ask: (kind, value, timeoutMs) => channel.ask(kind, value, timeoutMs),
      post: (kind, value) => channel.post(kind, value),
    }),
  })
  child.on('message', channel.receive)
  child.on('error', (error) => log.error({ err: error, process: plan.name }, 'process failed'))
  const ended = whenEnded(child)
  void ended.then(() => {
    channel.close()
    onEnded()
  })
  const member: Member = {
    ...{ plan, pid: child.pid, started_time: Date.now(), ask: channel.ask, ended },
    kill: () => void child.kill('SIGKILL'),
    stop: async (how, timeoutMs) => {
      const timer = setTimeout(() => {
        log.warn({ process: plan.name }, 'the process did not stop in time and is killed')
        child.kill('SIGKILL')
      }, timeoutMs)
      channel.ask(how, undefined, timeoutMs).catch(() => {})
      await ended
      clearTimeout(timer)
    },
  }
  const giveUp = () => member.kill()
  signal?.addEventListener('abort', giveUp)
  if (signal?.aborted) giveUp()
  try {
    const started = await channel.ask<StartedMessage>('start', message, startTimeoutMs)
    return { member, started }
  } catch (error) {
    member.kill()
    await ended
    throw error
  } finally {
    signal?.removeEventListener('abort', giveUp)
  }
}

const whenEnded = (child: ChildProcess): Member['ended'] =>
  new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
    // It could not be started at all.
    child.once('error', () => {
      if (child.pid === undefined) resolve({ code: 1, signal: null })
    })
  })
