// One process of a service that a supervisor started. It runs the app with the roles it is given, and does what the
// supervisor says: signals of the terminal are the supervisor's to interpret. It ends when the supervisor is gone.

import { setFlagsFromString } from 'node:v8'
import type { SliceReply } from '../../domain/limits/slice-owner.ts'
import { createSlicedLimiter } from '../../domain/limits/sliced-limiter.ts'
import type { Answer } from '../../gateway/rpc/answer.ts'
import type { Log } from '../../lib/log.ts'
import { type ProfileKind, recordProfile } from '../../lib/profile.ts'
import { type App, startApp } from '../app.ts'
import type { Config } from '../config/schema.ts'
import { type FilterCall, filterGone } from '../filter-peers.ts'
import { createLogger } from '../logger.ts'
import { type Channel, createChannel } from './channel.ts'
import { reloadTimeoutMs } from './joint-reload.ts'
import type { StartedMessage, StartMessage } from './messages.ts'
import { createNetworkSharing } from './network-sharing.ts'
import { partConfig } from './part.ts'

// As in a single process (cli/start/run.ts).
setFlagsFromString('--heap-growing-percent=60')

// How long the next process has had to take over the port before this one stops accepting.
const handOverMs = 1_000
const lastWordsMs = 2_000

let app: App | undefined
let log: Log | undefined
let next: Config | undefined
const running = (): App => {
  if (!app) throw new Error('The process has not started yet.')
  return app
}

let isEnding = false
const end = async (code: number) => {
  isEnding = true
  await app?.stop().catch((error: unknown) => log?.error({ err: error }, 'stop failed'))
  process.exitCode = code
  // The pipe to the supervisor would keep the process.
  process.disconnect?.()
}

const sharing = createNetworkSharing({
  ask: (kind, value, timeoutMs) => channel.ask(kind, value, timeoutMs),
  post: (kind, value) => channel.post(kind, value),
})

const channel: Channel = createChannel({
  send: (message) => {
    if (process.connected) process.send?.(message)
  },
  handlers: {
    ...sharing.handlers,
    start,
    // As the operator sees it: parts of it carry functions.
    status: async () => JSON.parse(JSON.stringify(await running().views.status())),
    metrics: () => running().views.metrics(),
    untracked: () => running().untracked(),
    filter: (call: FilterCall) => running().views.callFilter(call),
    profile: ({ kind, seconds }: { kind: ProfileKind; seconds: number }) =>
      recordProfile(kind, { seconds, signal: new AbortController().signal }),
    reload: (config: Config) => {
      next = config
      return running().reload()
    },
    drain: () => running().drain(),
    stop: () => void end(0),
    // Another process serves in its place already.
    retire: async () => {
      running().retire()
      await running().drain(AbortSignal.timeout(handOverMs))
      void end(0)
    },
  },
})

async function start(message: StartMessage): Promise<StartedMessage> {
  const { plan, cwd, version, server, isGranted, reusePort, port } = message
  const logger = await createLogger(message.config.logging)
  const named = withField(logger, { process: plan.name })
  log = named
  const configure = (config: Config) => partConfig(config, plan, port)
  app = await startApp({
    ...{ cwd, version, log: named, reusePort },
    env: process.env,
    config: configure(message.config),
    reread: () => configure(next ?? message.config),
    attachLog: logger.attach,
    setLogLevel: (level) => {
      logger.level = level
    },
    part: {
      ...{ server, sharing },
      ready: () => channel.ask('ready', undefined, reloadTimeoutMs),
      peers: {
        slot: plan.slot,
        forward: (slot, call) =>
          channel.ask<Answer>('filter', { slot, call }).catch(() => filterGone),
      },
      limiter: isGranted
        ? createSlicedLimiter({ ask: (asks) => channel.ask<SliceReply[]>('slices', asks) })
        : undefined,
    },
  })
  const { base_url, ws_url, demo } = app
  return { base_url, ws_url, port: app.port, demo }
}

const withField = (to: Log, fields: object): Log => ({
  debug: (given, message) => to.debug({ ...fields, ...given }, message),
  info: (given, message) => to.info({ ...fields, ...given }, message),
  warn: (given, message) => to.warn({ ...fields, ...given }, message),
  error: (given, message) => to.error({ ...fields, ...given }, message),
})

process.on('message', channel.receive)
// The supervisor is gone, and the next one needs the port at once: an exit of Node can take seconds. Before the listener of
// Node's own cluster, which exits.
process.prependListener('disconnect', () => {
  if (!isEnding) process.kill(process.pid, 'SIGKILL')
})
// A Ctrl-C reaches all processes of the terminal.
process.on('SIGINT', () => {})
process.on('SIGHUP', () => {})
process.on('SIGTERM', () => void channel.ask('terminate').catch(() => {}))
process.on('uncaughtException', (error) => {
  log?.error({ err: error }, 'the process fails and is replaced')
  app?.retire()
  setTimeout(() => process.exit(1), lastWordsMs).unref()
  void end(1).then(() => process.exit(1))
})
