// What an app answers to its supervisor: start, status, metrics, reload, drain and stop. The same code runs in a worker
// process and, before a service grows, in the process of the supervisor (`inside.ts`).

import type { SliceReply } from '../../domain/limits/slice-owner.ts'
import { createSlicedLimiter } from '../../domain/limits/sliced-limiter.ts'
import type { Answer } from '../../gateway/rpc/answer.ts'
import type { Log } from '../../lib/log.ts'
import { type ProfileKind, recordProfile } from '../../lib/profile.ts'
import { type App, type AppOptions, startApp } from '../app.ts'
import type { Config } from '../config/schema.ts'
import { type FilterCall, filterGone } from '../filter-peers.ts'
import { type Channel, createChannel } from './channel.ts'
import { reloadTimeoutMs } from './joint-reload.ts'
import type { StartedMessage, StartMessage } from './messages.ts'
import { createNetworkSharing } from './network-sharing.ts'
import { partConfig, type ServicePart } from './part.ts'

/** The app as one part of a service: it runs the roles that it is given, and answers what the supervisor asks for. */
export type PartService = {
  channel: Channel
  start(message: StartMessage): Promise<StartedMessage>
  app(): App | undefined
  /** Stops the app. Only the first call counts. */
  end(code: number): Promise<void>
  isEnding(): boolean
}

// The longest drain of a process that was replaced: the next one serves already, so no load balancer has to notice.
const handOverMs = 1_000

/** Makes the side of the supervisor's channel that runs the app. */
export function createPartService(options: {
  env: AppOptions['env']
  /** To the supervisor. */
  send(message: object): void
  openLog(
    message: StartMessage,
  ): Promise<{ log: Log } & Pick<AppOptions, 'attachLog' | 'setLogLevel'>>
  /** Breaks off the start. */
  signal?: AbortSignal | undefined
  /** In place of what the supervisor grants. */
  limiter?: ServicePart['limiter']
  /** The app has stopped. */
  onEnded(code: number): void
}): PartService {
  const { env, openLog, onEnded } = options
  let app: App | undefined
  let log: Log | undefined
  let next: Config | undefined
  let ending: Promise<void> | undefined

  const running = (): App => {
    if (!app) throw new Error('The process has not started yet.')
    return app
  }
  const stopApp = async (code: number): Promise<void> => {
    await app?.stop().catch((error: unknown) => log?.error({ err: error }, 'stop failed'))
    onEnded(code)
  }
  const end = (code: number): Promise<void> => {
    ending ??= stopApp(code)
    return ending
  }

  const sharing = createNetworkSharing({
    ask: (kind, value, timeoutMs) => channel.ask(kind, value, timeoutMs),
    post: (kind, value) => channel.post(kind, value),
  })

  const start = async (message: StartMessage): Promise<StartedMessage> => {
    const { plan, cwd, version, server, isGranted, reusePort, port } = message
    const opened = await openLog(message)
    log = opened.log
    const configure = (config: Config) => partConfig(config, plan, port)
    app = await startApp({
      ...{ ...opened, cwd, version, env, reusePort, signal: options.signal },
      config: configure(message.config),
      reread: () => configure(next ?? message.config),
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
          : options.limiter,
      },
    })
    const { base_url, ws_url, demo } = app
    return { base_url, ws_url, port: app.port, demo }
  }

  const channel: Channel = createChannel({
    send: options.send,
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

  return { channel, start, end, app: () => app, isEnding: () => ending !== undefined }
}
