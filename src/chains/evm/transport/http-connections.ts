// Connections to a node over HTTP, one exchange at a time on each. As many are opened as there are exchanges at once;
// the window of `http-exchanges.ts` bounds those.

import { Client } from 'undici'
import { type HttpAnswer, type HttpExchange, type PostOptions, post } from './http-exchange.ts'
import type { TransportFailure } from './transport.ts'

/** The connections to one node. */
export type HttpConnections = {
  /** How many exchanges are under way. */
  busy(): number
  isOpen(): boolean
  /** Posts a body over a free connection; an urgent one also over a connection not yet checked. */
  post(body: Buffer, how: PostManner, done: Done): HttpExchange
  stop(): Promise<void>
}

/** How a body is posted. */
export type PostManner = {
  isUrgent: boolean
  /** Longer strings of the answer are left out. */
  longestString?: number | undefined
}

type Done = (answer: HttpAnswer | TransportFailure) => void

type Connection = {
  client: Client
  isBusy: boolean
  /** Whether the node at the other end of this very connection was found to be on our chain. */
  isChecked: boolean
  isConnected: boolean
}

/**
 * Each connection is asked for its chain before anything else: where a node was, another one may be
 * after a restart, and no call must reach it.
 */
export function createHttpConnections(options: {
  origin: string
  connectTimeoutMs: number
  target: PostOptions
  /** The call that asks for the chain, and whether its answer is right. */
  question: Buffer
  isRight(answer: HttpAnswer): boolean
  /** The last connection has ended. */
  onClose(reason: string): void
}): HttpConnections {
  const connections: Connection[] = []
  let busy = 0
  let connected = 0
  let answered = 0

  const open = (): Connection => {
    const client = new Client(options.origin, {
      // A slow answer would hold up those behind it. HTTP/2 is not used: calls are spread over connections instead.
      pipelining: 1,
      allowH2: false,
      connect: { timeout: options.connectTimeoutMs },
    })
    const connection: Connection = { client, isBusy: false, isChecked: false, isConnected: false }
    client.on('connect', () => {
      connection.isConnected = true
      connection.isChecked = false
      if (++connected === 1) answered = 0
    })
    client.on('disconnect', (_origin, _targets, error) => {
      connection.isConnected = false
      connection.isChecked = false
      // A server that ends the connection after each answer has not gone away.
      if (--connected === 0 && answered > 1) options.onClose(error.code ?? error.name)
    })
    connections.push(connection)
    return connection
  }

  const choose = (): Connection => {
    let best: Connection | undefined
    for (const connection of connections) {
      if (connection.isBusy) continue
      // First in the list, so that few connections carry most calls and idle ones time out at the node.
      if (connection.isChecked) return connection
      if (!best || (connection.isConnected && !best.isConnected)) best = connection
    }
    return best ?? open()
  }

  const exchange = (
    connection: Connection,
    { body, longestString }: { body: Buffer; longestString?: number | undefined },
    mayStart: () => boolean,
    done: Done,
  ): HttpExchange => {
    const target =
      longestString === undefined ? options.target : { ...options.target, longestString }
    return post(connection.client, target, body, mayStart, (answer) => {
      if (!('failed' in answer)) {
        answered++
        if (answer.isLast) connection.isChecked = false
      }
      done(answer)
    })
  }

  return {
    busy: () => busy,
    isOpen: () => connected > 0,
    post: (body, { isUrgent, longestString }, done) => {
      const connection = choose()
      connection.isBusy = true
      busy++
      const free = (): void => {
        if (!connection.isBusy) return
        connection.isBusy = false
        busy--
      }
      const finish: Done = (answer) => {
        free()
        done(answer)
      }
      let current: HttpExchange
      const sent = { body, longestString }
      if (isUrgent) current = exchange(connection, sent, always, finish)
      else if (connection.isChecked)
        current = exchange(connection, sent, () => connection.isChecked, finish)
      else
        current = exchange(connection, { body: options.question }, always, (answer) => {
          if ('failed' in answer) finish({ ...answer, failed: unsentKind(answer) })
          else if (!options.isRight(answer)) finish(stranger)
          else {
            // A server that ends each connection leaves no better moment for the question.
            const { isLast } = answer
            connection.isChecked = connection.isConnected && !isLast
            current = exchange(connection, sent, () => connection.isChecked || isLast, finish)
          }
        })
      return {
        abort: () => {
          current.abort()
          free()
        },
      }
    },
    stop: async () => {
      await Promise.all(connections.map(({ client }) => client.destroy()))
    },
  }
}

// An urgent exchange is a probe: it asks for the chain itself.
const always = () => true

const stranger: TransportFailure = { failed: 'connect', detail: 'reports another chain id' }

// The question was lost, not the call.
const unsentKind = ({ failed }: TransportFailure): TransportFailure['failed'] =>
  failed === 'rate_limited' ? failed : 'connect'
