// The connection to Redis, which is optional. It is used for limits shared by several processes, for hints of changed keys
// (`changes.ts`), and for nothing that must not be lost: without Redis each process counts alone.

import type { Redis as Client } from 'ioredis'
import type { Log } from '../../lib/log.ts'

/** Runs one script with its keys and arguments. */
type RedisScript = (keys: readonly string[], args: readonly (number | string)[]) => Promise<unknown>

/** A connection that reconnects by itself. While it is down, its calls fail at once. */
export type RedisConnection = {
  /** Whether a call has a chance now. */
  ready(): boolean
  /** Prepares a Lua script; its text goes over the wire once per connection. */
  script(lua: string, number_of_keys: number): RedisScript
  /** Sends one command; its keys are given the configured prefix. */
  command(name: string, ...args: (number | string)[]): Promise<unknown>
  stop(): Promise<void>
}

/** How to reach Redis or Valkey. */
export type RedisOptions = {
  /** `redis://`, `rediss://`, or the path of a unix socket. */
  url: string
  key_prefix?: string
  log: Log
  /** No call takes longer than this, apart from time in which this process did not run. */
  command_timeout_ms?: number
  /** How long to wait for the first connection; after that, connecting continues in the background. */
  connect_wait_ms?: number
}

const MAX_RECONNECT_MS = 1_000
const SILENCE_MS = 2_000

const waitFor = async (connecting: Promise<void>, ms: number): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([connecting, late])
  clearTimeout(timer)
}

// A process that is loading or starved of CPU for longer is given up like a server that does not answer.
const MAX_EXTENSIONS = 10

/**
 * Rejects when a command has no answer in time. ioredis has a limit of its own, which also counts the time in which this
 * process was busy: the timer then fires before the answer, long there, is read. A process that started counted Redis as
 * lost by that, and admitted its share of the limits beside the others.
 */
const answered = async (command: Promise<unknown>, ms: number): Promise<unknown> => {
  const late = Promise.withResolvers<never>()
  let timer: NodeJS.Timeout | undefined
  let due = 0
  let extensions = 0
  const wait = () => {
    due = performance.now() + ms
    timer = setTimeout(expire, ms)
  }
  const expire = () => {
    const wasBusy = performance.now() - due > ms / 4
    if (wasBusy && extensions++ < MAX_EXTENSIONS) wait()
    // What has arrived meanwhile is read before this.
    else setImmediate(() => late.reject(new Error('Command timed out')))
  }
  wait()
  // After the limit it may still fail; the caller has gone on.
  command.catch(() => {})
  try {
    return await Promise.race([command, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

const prepareScript = (client: Client, name: string, ms: number): RedisScript => {
  const run = (client as unknown as Record<string, RedisScript | undefined>)[name]
  if (run === undefined) throw new Error(`script ${name} is not defined`)
  const send = run as unknown as (...args: (number | string)[]) => Promise<unknown>
  return (keys, args) => answered(send.call(client, ...keys, ...args), ms)
}

/** What may be logged of an error: those of ioredis carry the command that failed, with the password of AUTH. */
const loggable = (error: unknown): { message: string; code?: string } => {
  const { message, code } = error as Error & { code?: unknown }
  return { message: String(message), ...(typeof code === 'string' && { code }) }
}

/** A client that is not connected yet, and connects again by itself once it was. */
export const openClient = async (
  url: string,
  { key_prefix = '' }: { key_prefix?: string | undefined },
): Promise<Client> => {
  const { Redis } = await import('ioredis')
  return new Redis(url, {
    keyPrefix: key_prefix,
    lazyConnect: true,
    connectTimeout: SILENCE_MS,
    // A server that accepts and never answers is as good as gone.
    socketTimeout: SILENCE_MS,
    // Callers have something better to do than to wait, and a call repeated would count twice.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    // A subscriber subscribes at each connect.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(25 * 2 ** Math.min(attempt, 10), MAX_RECONNECT_MS),
  })
}

/** Connects. An unreachable server is not an error: the connection is retried. */
export const connectRedis = async ({
  url,
  key_prefix,
  log,
  command_timeout_ms = 100,
  // Longer than one attempt takes. A server that refuses ends the wait at once.
  connect_wait_ms = 2_500,
}: RedisOptions): Promise<RedisConnection> => {
  const client = await openClient(url, { key_prefix })
  let connected = false
  client.on('ready', () => {
    connected = true
    log.info({}, 'redis connected')
  })
  client.on('error', (error: Error) => {
    // Once per outage: every attempt to reconnect fails alike.
    if (connected) log.warn({ error: loggable(error) }, 'redis connection lost')
    else log.debug({ error: loggable(error) }, 'redis unreachable')
    connected = false
  })
  client.on('close', () => {
    connected = false
  })
  await waitFor(
    client.connect().catch((error: unknown) => {
      log.warn({ error: loggable(error) }, 'redis unreachable, retrying')
    }),
    connect_wait_ms,
  )
  let scripts = 0
  return {
    ready: () => client.status === 'ready',
    script: (lua, number_of_keys) => {
      scripts += 1
      const name = `portolanScript${scripts}`
      client.defineCommand(name, { lua, numberOfKeys: number_of_keys })
      return prepareScript(client, name, command_timeout_ms)
    },
    command: (name, ...args) => answered(client.call(name, ...args), command_timeout_ms),
    stop: async () => {
      if (client.status === 'ready') await client.quit().catch(() => {})
      client.disconnect()
    },
  }
}
