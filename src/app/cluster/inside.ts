import type { AppOptions } from '../app.ts'
import { type Channel, createChannel, type Handlers } from './channel.ts'
import type { Member } from './member.ts'
import type { StartedMessage, StartMessage } from './messages.ts'
import type { ServicePart } from './part.ts'
import { createPartService } from './part-service.ts'

/** Runs the whole app in the process of the supervisor, which sees it as one of its processes. */
export async function startInside(
  message: StartMessage,
  options: Pick<AppOptions, 'env' | 'log' | 'signal' | 'attachLog' | 'setLogLevel'> & {
    limiter: ServicePart['limiter']
    handlersOf(process: Pick<Channel, 'ask' | 'post'>): Handlers
  },
): Promise<{ member: Member; started: StartedMessage }> {
  const { env, log, attachLog, setLogLevel, limiter, handlersOf } = options
  const ended = Promise.withResolvers<Awaited<Member['ended']>>()
  const service = createPartService({
    ...{ env, limiter, signal: options.signal },
    // Later, as between processes: neither side is called while it calls.
    send: (given) => queueMicrotask(() => channel.receive(given)),
    openLog: async () => ({
      log,
      ...(attachLog && { attachLog }),
      ...(setLogLevel && { setLogLevel }),
    }),
    onEnded: (code) => {
      // The log outlives the app.
      attachLog?.({ context: () => ({}) })
      ended.resolve({ code, signal: null })
    },
  })
  const channel: Channel = createChannel({
    send: (given) => queueMicrotask(() => service.channel.receive(given)),
    handlers: handlersOf({
      ask: (kind, value, timeoutMs) => channel.ask(kind, value, timeoutMs),
      post: (kind, value) => channel.post(kind, value),
    }),
  })
  const started_time = Date.now()
  // Not through the channel: a person reads why a start fails.
  const started = await service.start(message)
  return {
    started,
    member: {
      ...{ plan: message.plan, pid: process.pid, started_time, ask: channel.ask },
      ended: ended.promise,
      stop: async (how, timeoutMs) => {
        if (how === 'retire') await channel.ask(how, undefined, timeoutMs)
        else void service.end(0)
        await ended.promise
        channel.close()
        service.channel.close()
      },
      // It is not another process.
      kill: () => {},
    },
  }
}
