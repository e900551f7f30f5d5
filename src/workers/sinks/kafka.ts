import { readServer } from '../../domain/sinks/settings.ts'
import { cloudEventsType, keyParts } from './cloud-event.ts'
import { missing, type OpenPublisher, TooLargeError } from './publisher.ts'

/** Opens a producer for a Kafka-compatible broker. The client is loaded here, so that installations without a sink never load it. */
export const openKafka: OpenPublisher = async (options) => {
  const { source, settings, credentials, guard, timeoutMs } = options
  const kafka = await import('@platformatic/kafka').catch(missing)
  const { username, password, sasl_mechanism = 'PLAIN' } = credentials
  const bootstrapBrokers = settings.servers.map(readServer)
  const producer = new kafka.Producer({
    clientId: 'portolan',
    bootstrapBrokers,
    serializers: kafka.stringSerializers,
    // All in-sync replicas: the position of the sink moves after this acknowledgement.
    acks: -1,
    connectTimeout: timeoutMs,
    requestTimeout: timeoutMs,
    timeout: timeoutMs,
    // The worker repeats a page itself, with a pause.
    retries: false,
    ...(settings.tls && { tls: { lookup: guard.lookup }, tlsServerName: true }),
    ...(username !== undefined && {
      sasl: { mechanism: sasl_mechanism, username, password: password ?? '' },
    }),
  })

  // A cluster announces the addresses of its brokers, which must pass the same check as those of the user.
  const open = producer[kafka.kGetConnection].bind(producer)
  producer[kafka.kGetConnection] = (broker, callback) => {
    guard.resolve(broker.host).then(
      // With TLS the certificate is checked against the name, and the socket uses the guarded look-up.
      (address) =>
        open({ host: settings.tls ? broker.host : address, port: broker.port }, callback),
      (error: Error) => callback(error),
    )
  }
  // The servers of the user, in their order and through the same check.
  producer[kafka.kGetBootstrapConnection] = (callback) => {
    const tryNext = (index: number): void =>
      producer[kafka.kGetConnection](bootstrapBrokers[index]!, (error, connection) => {
        if (!error || index + 1 >= bootstrapBrokers.length) callback(error, connection)
        else tryNext(index + 1)
      })
    tryNext(0)
  }

  return {
    publish: async (messages, signal) => {
      signal.throwIfAborted()
      const sending = producer.send({
        messages: messages.map((message) => ({
          topic: settings.topic ?? 'portolan',
          // One key is in one partition, where the order is that of the request.
          key: keyParts(source, message).join('/'),
          value: message.body.toString('utf8'),
          headers: { 'content-type': cloudEventsType, 'portolan-id': message.id },
        })),
      })
      await abortable(sending, signal).catch((error: unknown) => {
        throw isTooLarge(error)
          ? new TooLargeError('A record is larger than the broker takes.', { cause: error })
          : error
      })
    },
    stop: () => producer.close(true),
  }
}

async function abortable(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

const tooLarge: ReadonlySet<unknown> = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'])

/** Whether the broker refuses a request for its size; the client wraps what each broker and partition answered. */
export function isTooLarge(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { apiId, errors, cause } = error as Error & { apiId?: unknown; errors?: unknown }
  if (tooLarge.has(apiId)) return true
  const inner = Array.isArray(errors) ? errors : []
  return [...inner, cause].some(isTooLarge)
}
