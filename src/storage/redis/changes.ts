// Changes of keys and organizations over Redis, beside NOTIFY. A database that dies right after a commit loses its
// notifications, and gateways serve the keys that they know without a database. Like those, messages are hints: what a
// process misses it reads from the database within half a minute.

import type { Log } from '../../lib/log.ts'
import type { Change } from '../pg/changes.ts'
import { openClient, type RedisConnection, type RedisOptions } from './redis.ts'

/** A change of who may call. */
export type AccessChange = Extract<Change, { kind: 'credential' | 'organization' }>

type Options = Pick<RedisOptions, 'url' | 'key_prefix'> & { log: Log }

// A peer that vanished without closing the connection would stop all messages unnoticed. A command without an answer ends it.
const heartbeatMs = 5_000

const channelOf = (key_prefix = '') => `${key_prefix}change`

/** Says that a change has happened. It never fails and takes a bounded time: processes hear of it from the database, too. */
export const createChangePublisher =
  (redis: Pick<RedisConnection, 'ready' | 'command'>, { key_prefix, log }: Omit<Options, 'url'>) =>
  async (change: AccessChange): Promise<void> => {
    if (!redis.ready()) return
    await redis
      .command('publish', channelOf(key_prefix), JSON.stringify(change))
      .catch(({ message }: Error) => log.debug({ message }, 'change was not sent over redis'))
  }

const parseChange = (text: string): AccessChange | undefined => {
  try {
    const { kind, organization_id, credential_id } = JSON.parse(text)
    if (typeof organization_id !== 'string') return undefined
    if (kind === 'organization') return { kind, organization_id }
    if (kind !== 'credential' || typeof credential_id !== 'string') return undefined
    return { kind, organization_id, credential_id }
  } catch {
    return undefined
  }
}

/** Listens on a connection of its own until stopped, and connects again whenever that is lost. */
export const listenOnRedis = async ({
  url,
  key_prefix,
  log,
  onChange,
}: Options & { onChange(change: AccessChange): void }): Promise<{ stop(): Promise<void> }> => {
  const client = await openClient(url, {})
  const channel = channelOf(key_prefix)
  // The connection for limits reports outages.
  client.on('error', ({ message }: Error) => log.debug({ message }, 'redis unreachable'))
  let isSubscribed = false
  let isRefused = false
  const subscribe = async () => {
    try {
      await client.subscribe(channel)
      isSubscribed = true
    } catch (error) {
      // A lost connection is subscribed again at its next start. An access list may refuse the channel, which stays so.
      if (client.status !== 'ready' || isRefused) return
      isRefused = true
      const { message } = error as Error
      log.warn({ message, channel }, 'redis refuses the channel of changes')
    }
  }
  client.on('ready', () => void subscribe())
  client.on('close', () => {
    isSubscribed = false
  })
  client.on('message', (_channel: string, text: string) => {
    const change = parseChange(text)
    if (!change) return log.warn({}, 'unreadable change on redis')
    try {
      onChange(change)
    } catch (error) {
      // Thrown on, it would end the process from inside the driver's event.
      log.error({ err: error, change }, 'change handler failed')
    }
  })
  const heartbeat = setInterval(() => {
    if (client.status !== 'ready') return
    if (isSubscribed) client.ping().catch(() => {})
    else void subscribe()
  }, heartbeatMs)
  client.connect().catch(() => {})
  return {
    stop: async () => {
      clearInterval(heartbeat)
      client.disconnect()
    },
  }
}
