import { isUtf8 } from 'node:buffer'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { notificationBuffer } from '../../contract/operations/gateway.ts'
import type { Principal } from '../../domain/access/principal.ts'
import type { Network } from '../../gateway/network.ts'
import type { Dispatch } from '../../gateway/rpc/answer.ts'
import { refused } from '../../gateway/rpc/answer.ts'
import { refuse } from '../../gateway/rpc/rpc-error.ts'
import { faultOf, type Serve } from '../../gateway/rpc/serve.ts'
import { alone, type Served } from '../../gateway/rpc/served.ts'
import type { Streams } from '../../gateway/streams/feed-streams.ts'
import type { AccessLog } from '../access-log.ts'
import { textFrame } from './frame.ts'
import { createOutbox } from './outbox.ts'

/** A client that is connected. */
export type Connection = {
  network: Network
  principal: Principal
  /** The address that it was opened from. */
  client: string
  /** Differs from those of the other connections of the process. */
  number: number
  /** When it was opened, by the clock of the service. */
  openTime: number
  /** The number of its subscriptions by their name. */
  subscriptions(): Record<string, number>
  /** What waits for the client. */
  bufferedBytes(): number
  /** The current principal of its key. The connection is closed when the key loses access to the gateway. */
  recheck(): Promise<Principal | undefined>
  /** Called now and then: looks whether the client is still there. */
  beat(): void
  close(code: number, reason: string): void
  terminate(): void
}

/** The bounds of a connection. */
export type ConnectionLimits = {
  /** Notifications that wait for the client (spec 6.2.3). */
  maxNotifications: number
  /** Bytes that wait for the client. */
  maxBytes: number
  /** Messages that are being answered at the same time; more are not read. */
  maxInFlight: number
  /** Bytes of answers that wait, from which on nothing more is read. */
  pauseBytes: number
  /** How long a client may take to answer the end of a connection. */
  closeMs: number
}

/** How the bounds are set. */
export const defaultConnectionLimits: ConnectionLimits = {
  maxNotifications: notificationBuffer,
  maxBytes: 67_108_864,
  maxInFlight: 64,
  pauseBytes: 1_048_576,
  closeMs: 5_000,
}

/**
 * What one read of the socket may hold: 64 KiB are 9,000 of the shortest messages, all of which come in one turn of the event loop.
 * No call is shorter than 35 bytes, so calls cannot be that many.
 */
const mostPerRead = 2_000
/** Messages and pings of one turn of the event loop. A socket that is flooded has up to 32 reads in a turn. */
const mostPerTurn = 64

const badText = alone(refused(refuse('INVALID_JSON', 'The message is not valid UTF-8.')))
const noLife = 'no sign of life'

/** Serves one WebSocket until it ends. */
export function openConnection(options: {
  ws: WebSocket
  socket: Duplex
  network: Network
  streams: Streams
  principal: Principal
  client: string
  number: number
  openTime: number
  /** Of the handshake; lines of sampled calls name it. */
  request_id: string
  access: Pick<AccessLog, 'isSampled' | 'follow'>
  serve: Serve
  limits: ConnectionLimits
  /** The current principal of the key. */
  check(): Principal | undefined | Promise<Principal | undefined>
  onClosed(connection: Connection): void
  onOverflow(): void
}): Connection {
  const { ws, socket, network, streams, principal, serve, limits, check, access } = options
  // Messages that are being answered. The socket is not read while there are too many, so the
  // client waits and not the memory.
  let inFlight = 0
  let isPaused = false
  // Whether something came since the last beat. Two beats without a sign end the connection.
  let hasReceived = true
  let isDoubted = false
  let ping: Buffer | undefined
  let isPonging = false

  let inRead = 0
  // Before the reading of `ws`, which attached its own listener first.
  socket.prependListener('data', () => {
    inRead = 0
  })
  // After so many, what follows in the socket is read in the next turn.
  let inTurn = 0
  const count = () => {
    if (inTurn++ === 0) setImmediate(nextTurn)
    if (inTurn === mostPerTurn) pause()
  }
  const nextTurn = () => {
    inTurn = 0
    resume()
  }
  /** Whether the client may send this, too. The rest of a flood is not looked at. */
  const isTaken = (): boolean => {
    if (inRead > mostPerRead) return false
    inRead++
    if (inRead > mostPerRead) ws.terminate()
    return inRead <= mostPerRead
  }

  const close = (code: number, reason: string) => {
    outbox.close()
    client.stop()
    ws.close(code, reason)
    // The peer may never read that; its socket is not kept for it.
    setTimeout(() => ws.terminate(), limits.closeMs).unref()
  }
  const outbox = createOutbox(socket, {
    ...limits,
    onOverflow: (reason) => {
      options.onOverflow()
      close(1013, reason)
    },
    onEmpty: () => resume(),
  })
  const client = streams.open({ push: outbox.notify, close }, principal)

  const pause = () => {
    if (isPaused) return
    isPaused = true
    ws.pause()
  }
  const resume = () => {
    const isFull = inFlight >= limits.maxInFlight || outbox.bytes() > limits.pauseBytes
    if (!isPaused || isFull || inTurn >= mostPerTurn) return
    isPaused = false
    ws.resume()
  }
  const begin = () => {
    inFlight++
    if (inFlight >= limits.maxInFlight || outbox.bytes() > limits.pauseBytes) pause()
  }

  const answer = ({ body }: Served) => {
    inFlight--
    if (body !== '' && ws.readyState === ws.OPEN) outbox.answer(textFrame(body))
    resume()
  }

  const ask = (who: Principal, body: string) => {
    let hasHeld = false
    const subscribe: Dispatch = (method, call, session, done) => {
      // The answer comes before the first notification, though it may be one of a slow batch.
      if (!hasHeld) outbox.hold()
      hasHeld = true
      client.dispatch(method, call, session, done)
    }
    const own: Network = {
      ...network,
      call: (call, session, done) => network.call(call, session, done, subscribe),
    }
    const finish = (served: Served) => {
      answer(served)
      if (hasHeld) outbox.release()
    }
    if (!access.isSampled()) return serve(own, who, body, finish)
    const { request_id, client: address } = options
    const call = { request_id, client: address, network, principal: who, body } as const
    serve(own, who, body, access.follow({ ...call, isSocket: true }, finish))
  }

  const serveAs = (who: Principal | undefined, body: string) => {
    if (who) return ask(who, body)
    inFlight--
    close(1008, 'the API key is not valid any more')
  }

  ws.on('message', (data: Buffer, isBinary: boolean) => {
    if (!isTaken()) return
    count()
    hasReceived = true
    begin()
    // A text that is not UTF-8 has ended the connection with 1007 before it came here.
    if (isBinary && !isUtf8(data)) return answer(badText)
    // Bytes, not characters: the gateway scans JSON as latin1 and passes it on unchanged.
    const body = data.toString('latin1')
    try {
      const who = check()
      if (!(who instanceof Promise)) return serveAs(who, body)
      who.then((known) => serveAs(known, body)).catch((error) => answer(alone(faultOf(error))))
    } catch (error) {
      answer(alone(faultOf(error)))
    }
  })

  // Only the last ping needs an answer (RFC 6455 5.5.3). One pong at a time is on its way to the kernel, so that a flood of pings
  // fills no memory, and each has a turn of its own.
  const pong = () => {
    if (!ping || ws.readyState !== ws.OPEN) {
      isPonging = false
      return
    }
    ws.pong(ping, undefined, () => setImmediate(pong))
    ping = undefined
  }
  ws.on('ping', (data) => {
    count()
    hasReceived = true
    ping = data
    if (isPonging) return
    isPonging = true
    setImmediate(pong)
  })
  ws.on('pong', () => {
    hasReceived = true
  })
  // The end follows in any case.
  ws.on('error', () => {})
  ws.on('close', () => {
    outbox.close()
    client.stop()
    options.onClosed(connection)
  })

  const connection: Connection = {
    network,
    principal,
    client: options.client,
    number: options.number,
    openTime: options.openTime,
    subscriptions: client.counts,
    bufferedBytes: () => outbox.bytes() + socket.writableLength,
    async recheck() {
      // An unreachable database does not end connections: the last known principal counts.
      const known = await Promise.resolve(check()).catch(() => principal)
      if (!known) close(1008, 'the API key is not valid any more')
      return known
    },
    beat() {
      const isAlive = hasReceived || (outbox.waiting() > 0 && outbox.hasMoved())
      if (!isAlive && isDoubted) return close(1001, noLife)
      isDoubted = !isAlive
      hasReceived = false
      if (socket.writableLength === 0) ws.ping()
    },
    close,
    terminate: () => ws.terminate(),
  }
  return connection
}
