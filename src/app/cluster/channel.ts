// Requests over the pipe that Node gives a child process. Every request has a time limit, and at most `maxWaiting` of them
// wait: a process that hangs must not fill the memory of the one that asks.

/** Requests and replies between a supervisor and one of its processes. */
export type Channel = {
  /** Asks the other side; rejects when it fails, is gone or does not answer in time. */
  ask<answer>(kind: string, value?: unknown, timeoutMs?: number): Promise<answer>
  /** Sends without waiting for a reply. It is lost when the other side is gone. */
  post(kind: string, value: unknown): void
  /** To be called with every message of the other side. */
  receive(message: unknown): void
  /** The other side is gone. */
  close(): void
}

/** Answers what the other side asks for. */
// biome-ignore lint/suspicious/noExplicitAny: each kind has a value of its own
export type Handlers = Readonly<Record<string, (value: any) => unknown>>

/** Errors in a form that survives the way between processes, with what explains them to a person. */
type SentError = { name: string; message: string } & Record<string, unknown>

type Message =
  | { type: 'ask'; id: number; kind: string; value: unknown }
  | { type: 'post'; id: 0; kind: string; value: unknown }
  | { type: 'reply'; id: number; value: unknown }
  | { type: 'failure'; id: number; error: SentError }

const usualTimeoutMs = 10_000
// A bound: a process that hangs must not collect requests without end.
const maxWaiting = 20_000
// Of system, database and configuration errors.
const details = ['code', 'severity', 'syscall', 'address', 'port', 'path', 'problems'] as const

/** Makes one side of a channel. */
export function createChannel(options: {
  send(message: object): void
  handlers: Handlers
}): Channel {
  const { send, handlers } = options
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let lastId = 0
  let isClosed = false

  const answer = async (id: number, kind: string, value: unknown): Promise<void> => {
    try {
      const handler = handlers[kind]
      if (!handler) throw new Error(`There is no request ${kind}.`)
      const reply: Message = { type: 'reply', id, value: await handler(value) }
      if (!isClosed) send(reply)
    } catch (error) {
      const failure: Message = { type: 'failure', id, error: toSent(error) }
      if (!isClosed) send(failure)
    }
  }

  return {
    ask: async <answer>(kind: string, value?: unknown, timeoutMs = usualTimeoutMs) => {
      if (isClosed || waiting.size >= maxWaiting) throw new ProcessGoneError(kind)
      const id = ++lastId
      const reply = Promise.withResolvers<unknown>()
      waiting.set(id, reply)
      const timer = setTimeout(
        () => reply.reject(new Error(`No answer to ${kind} within ${timeoutMs} ms.`)),
        timeoutMs,
      )
      try {
        send({ type: 'ask', id, kind, value })
        return (await reply.promise) as answer
      } finally {
        clearTimeout(timer)
        waiting.delete(id)
      }
    },
    post: (kind, value) => {
      const message: Message = { type: 'post', id: 0, kind, value }
      if (!isClosed) send(message)
    },
    receive: (given) => {
      if (!isMessage(given)) return
      if (given.type === 'ask') void answer(given.id, given.kind, given.value)
      else if (given.type === 'post') handlers[given.kind]?.(given.value)
      else if (given.type === 'reply') waiting.get(given.id)?.resolve(given.value)
      else waiting.get(given.id)?.reject(fromSent(given.error))
    },
    close: () => {
      isClosed = true
      for (const { reject } of waiting.values()) reject(new ProcessGoneError('a request'))
      waiting.clear()
    },
  }
}

/** The process that was asked has ended. */
class ProcessGoneError extends Error {
  override name = 'ProcessGoneError'
  constructor(kind: string) {
    super(`The process ended before it answered ${kind}.`)
  }
}

// Other libraries may use the same pipe.
const isMessage = (given: unknown): given is Message =>
  typeof given === 'object' && given !== null && 'type' in given && 'id' in given

function toSent(error: unknown): SentError {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) }
  const own = error as unknown as Record<string, unknown>
  const { name, message } = error
  return {
    ...{ name, message },
    ...Object.fromEntries(
      details.flatMap((key) => (own[key] === undefined ? [] : [[key, own[key]]])),
    ),
  }
}

const fromSent = ({ message, ...rest }: SentError): Error => Object.assign(new Error(message), rest)
