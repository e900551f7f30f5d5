import { isIPv6 } from 'node:net'
import type { TlsOptions } from '@nats-io/transport-node'
import { cloudEventsType, keyParts, type SinkMessage } from './cloud-event.ts'
import { connectToAny, missing, type OpenPublisher, TooLargeError } from './publisher.ts'

// Wallets that are published for at once. Messages of one wallet follow each other: two under way could be stored in
// the wrong order if the first one failed.
const walletsAtOnce = 64

/** Opens a connection to NATS. The client is loaded here, so that installations without a sink never load it. */
export const openNats: OpenPublisher = async (options) => {
  const { source, settings, credentials, guard, timeoutMs } = options
  const { connect, headers } = await import('@nats-io/transport-node').catch(missing)
  const { jetstream } = await import('@nats-io/jetstream').catch(missing)
  const { username, password, token } = credentials
  const connection = await connectToAny(settings, async ({ host, port }) => {
    const address = await guard.resolve(host)
    // The certificate is that of the name, not of the address.
    const tls: TlsOptions & { servername: string } = { servername: host }
    return await connect({
      name: 'portolan',
      // The address that was checked: a second look-up could give another one.
      servers: `${isIPv6(address) ? `[${address}]` : address}:${port}`,
      tls: settings.tls ? tls : null,
      timeout: timeoutMs,
      // The worker connects again itself, with a pause and with another look-up.
      reconnect: false,
      // Servers that the cluster announces are not checked.
      ignoreClusterUpdates: true,
      pingInterval: 20_000,
      ...(username !== undefined && { user: username, pass: password ?? '' }),
      ...(token !== undefined && { token }),
    })
  })
  const stream = jetstream(connection, { timeout: timeoutMs })

  const publishOne = async (message: SinkMessage) => {
    const subject = [settings.subject_prefix, ...keyParts(source, message)].join('.')
    const mine = headers()
    mine.set('content-type', cloudEventsType)
    try {
      await stream.publish(subject, message.body, { msgID: message.id, headers: mine })
    } catch (error) {
      if (!isTooLarge(error)) throw error
      throw new TooLargeError(`${message.body.length} bytes are more than the server takes.`, {
        cause: error,
      })
    }
  }

  return {
    publish: async (messages, signal) => {
      // Taken from the end: the oldest last.
      const wallets = [...Map.groupBy(messages, ({ wallet }) => wallet).values()].reverse()
      let failure: { error: unknown } | undefined
      // Ends the waits for acknowledgements.
      const onAbort = () => void connection.close().catch(() => {})
      signal.addEventListener('abort', onAbort, { once: true })
      const work = async () => {
        for (let mine = wallets.pop(); mine; mine = wallets.pop())
          for (const message of mine) {
            if (failure) return
            signal.throwIfAborted()
            await publishOne(message)
          }
      }
      const workers = Array.from({ length: Math.min(walletsAtOnce, wallets.length) }, () =>
        work().catch((error: unknown) => {
          failure ??= { error }
        }),
      )
      await Promise.all(workers)
      signal.removeEventListener('abort', onAbort)
      if (failure) throw failure.error
    },
    stop: () => connection.close(),
  }
}

// Of the stream: its own largest size of a message.
const exceedsStream = 10_054

/** Whether the client refuses a message for the largest size of the server, or the server for that of the stream. */
const isTooLarge = (error: unknown): boolean =>
  error instanceof Error &&
  ((error.name === 'InvalidArgumentError' && error.message.includes('max_payload')) ||
    ('code' in error && error.code === exceedsStream))
