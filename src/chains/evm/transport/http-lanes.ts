import { Client } from 'undici'
import { type HttpAnswer, type HttpExchange, type PostOptions, post } from './http-exchange.ts'
import type { TransportFailure } from './transport.ts'

/** The connections to one node. */
export type HttpLanes = {
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
export function createHttpLanes(options: {
  origin: string
  connectTimeoutMs: number
  target: PostOptions
  /** The call that asks for the chain, and whether its answer is right. */
  question: Buffer
  isRight(answer: HttpAnswer): boolean
  /** The last connection has ended. */
  onClose(reason: string): void
}): HttpLanes {
  const lanes: Connection[] = []
  let busy = 0
  let connections = 0
  let answered = 0

  const open = (): Connection => {
    const client = new Client(options.origin, {
      pipelining: 1,
      allowH2: false,
      connect: { timeout: options.connectTimeoutMs },
    })
    const lane: Connection = { client, isBusy: false, isChecked: false, isConnected: false }
    client.on('connect', () => {
      lane.isConnected = true
      lane.isChecked = false
      if (++connections === 1) answered = 0
    })
    client.on('disconnect', (_origin, _targets, error) => {
      lane.isConnected = false
      lane.isChecked = false
      // A server that ends the connection after each answer has not gone away.
      if (--connections === 0 && answered > 1) options.onClose(error.code ?? error.name)
    })
    lanes.push(lane)
    return lane
  }

  const choose = (): Connection => {
    let best: Connection | undefined
    for (const lane of lanes) {
      if (lane.isBusy) continue
      if (lane.isChecked) return lane
      if (!best || (lane.isConnected && !best.isConnected)) best = lane
    }
    return best ?? open()
  }

  const exchange = (
    lane: Connection,
    { body, longestString }: { body: Buffer; longestString?: number | undefined },
    mayStart: () => boolean,
    done: Done,
  ): HttpExchange => {
    const target =
      longestString === undefined ? options.target : { ...options.target, longestString }
    return post(lane.client, target, body, mayStart, (answer) => {
      if (!('failed' in answer)) {
        answered++
        if (answer.isLast) lane.isChecked = false
      }
      done(answer)
    })
  }

  return {
    busy: () => busy,
    isOpen: () => connections > 0,
    post: (body, { isUrgent, longestString }, done) => {
      const lane = choose()
      lane.isBusy = true
      busy++
      const free = (): void => {
        if (!lane.isBusy) return
        lane.isBusy = false
        busy--
      }
      const finish: Done = (answer) => {
        free()
        done(answer)
      }
      let current: HttpExchange
      const sent = { body, longestString }
      if (isUrgent) current = exchange(lane, sent, always, finish)
      else if (lane.isChecked) current = exchange(lane, sent, () => lane.isChecked, finish)
      else
        current = exchange(lane, { body: options.question }, always, (answer) => {
          if ('failed' in answer) finish({ ...answer, failed: unsentKind(answer) })
          else if (!options.isRight(answer)) finish(stranger)
          else {
            // A server that ends each connection leaves no better moment for the question.
            const { isLast } = answer
            lane.isChecked = lane.isConnected && !isLast
            current = exchange(lane, sent, () => lane.isChecked || isLast, finish)
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
      await Promise.all(lanes.map(({ client }) => client.destroy()))
    },
  }
}

const always = () => true

const stranger: TransportFailure = { failed: 'connect', detail: 'reports another chain id' }

// The question was lost, not the call.
const unsentKind = ({ failed }: TransportFailure): TransportFailure['failed'] =>
  failed === 'rate_limited' ? failed : 'connect'
