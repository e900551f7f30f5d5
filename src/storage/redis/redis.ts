// The connection to Redis, which is optional. It is used for limits shared by several processes and for
// nothing that must not be lost: without Redis each process counts alone.

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
  /** No call takes longer than this. */
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

const prepareScript = (client: Client, name: string): RedisScript => {
  const run = (client as unknown as Record<string, RedisScript | undefined>)[name]
  if (run === undefined) throw new Error(`script ${name} is not defined`)
  const send = run as unknown as (...args: (number | string)[]) => Promise<unknown>
  return (keys, args) => send.call(client, ...keys, ...args)
}

/** What may be logged of an error: those of ioredis carry the command that failed, with the password of AUTH. */
const loggable = (error: unknown): { message: string; code?: string } => {
  const { message, code } = error as Error & { code?: unknown }
  return { message: String(message), ...(typeof code === 'string' && { code }) }
}

/** Connects. An unreachable server is not an error: the connection is retried. */
export const connectRedis = async ({
  url,
  key_prefix = '',
  log,
  command_timeout_ms = 100,
  connect_wait_ms = 1_000,
}: RedisOptions): Promise<RedisConnection> => {
  const { Redis } = await import('ioredis')
  const client = new Redis(url, {
    keyPrefix: key_prefix,
    lazyConnect: true,
    commandTimeout: command_timeout_ms,
    connectTimeout: SILENCE_MS,
    // A server that accepts and never answers is as good as gone.
    socketTimeout: SILENCE_MS,
    // Callers have something better to do than to wait, and a call repeated would count twice.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(25 * 2 ** Math.min(attempt, 10), MAX_RECONNECT_MS),
  })
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
      return prepareScript(client, name)
    },
    command: async (name, ...args) => await client.call(name, ...args),
    stop: async () => {
      if (client.status === 'ready') await client.quit().catch(() => {})
      client.disconnect()
    },
  }
}
