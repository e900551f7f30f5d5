// The gateway on Node's server, for requests that the fast path leaves to it. A large body is counted by its announced
// length before it is read.

import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Reason } from '../contract/errors/errors.ts'
import { type Paid, smallBodyBytes } from '../domain/access/admit.ts'
import type { Served } from '../gateway/rpc/served.ts'
import type { ClientAddress } from './clients/client-address.ts'
import { createDrainPace } from './clients/drain-pace.ts'
import type { Bound, Shares } from './clients/shares.ts'
import { drainBody, noRoomReasons, openRoom } from './exchange.ts'
import type { Admission, GatewayFront } from './fast-path/gateway-front.ts'
import { readGatewayHeaders } from './fast-path/gateway-headers.ts'
import { createLargeAnswers, partLength } from './large-answers.ts'
import type { DirectHandler } from './server.ts'

// biome-ignore lint/suspicious/noControlCharactersInRegex: the bytes that are not ASCII
const ascii = /^[\x00-\x7f]*$/
/** Kept of each end of a body that is refused: its id is there, if it has one. */
const endBytes = 1_024

/** How long a body that is refused is read at most. */
const refusedMs = 5_000

/**
 * Receives a body that is refused whatever it says, at the pace that its client has for such, and keeps its two ends
 * only. Whole ones were 45 % of a core at ten bodies of 4 MiB a second, most of it for collecting their memory.
 */
function receiveEnds(
  request: IncomingMessage,
  waitMs: (bytes: number) => number,
  done: (ends: string, isWhole: boolean) => void,
): void {
  let start = ''
  let end = ''
  const finish = (isWhole: boolean) => {
    clearTimeout(timer)
    request.off('data', onData).off('end', onEnd)
    // What is cut anywhere may be no valid UTF-8, and parts of it are echoed.
    done(ascii.test(start + end) ? start + end : '', isWhole)
  }
  const onData = (chunk: Buffer) => {
    if (start.length < endBytes) start += chunk.toString('latin1', 0, endBytes)
    end = (end + chunk.toString('latin1', Math.max(0, chunk.length - endBytes))).slice(-endBytes)
    const wait = waitMs(chunk.length)
    if (wait === 0) return
    request.pause()
    setTimeout(() => request.resume(), wait).unref()
  }
  const onEnd = () => finish(true)
  const timer = setTimeout(finish, refusedMs, false).unref()
  request.on('data', onData).on('end', onEnd)
}

/** The names and values of header lines in turn, as Node takes them. */
const headersIn = (lines: string): string[] =>
  lines
    .split('\r\n')
    .slice(0, -1)
    .flatMap((line) => {
      const colon = line.indexOf(': ')
      return [line.slice(0, colon), line.slice(colon + 2)]
    })

/**
 * Serves the gateway's addresses beside the general path of the server: what that does for every
 * exchange would cost more than the calls themselves.
 */
export function createGatewayHandler(
  front: GatewayFront,
  clientOf: ClientAddress,
  bodies?: Shares,
): DirectHandler {
  const { bodyLimitBytes } = front
  const drainPace = createDrainPace()
  const large = createLargeAnswers()

  const receive = (
    request: IncomingMessage,
    take: (bytes: number) => Bound | undefined,
    done: (body: Buffer | Bound | 'broken' | undefined) => void,
  ) => {
    // While the limits were asked.
    if (request.destroyed) return done('broken')
    let first: Buffer | undefined
    let rest: Buffer[] | undefined
    let size = 0
    let isOver = false
    const onData = (chunk: Buffer) => {
      size += chunk.length
      const isTooLarge = size > bodyLimitBytes
      const bound = isTooLarge ? undefined : take(chunk.length)
      if (isTooLarge || bound) {
        isOver = true
        // Paused: the rest stays in the socket and does not fill the memory.
        request.off('data', onData).pause()
        done(bound)
      } else if (first === undefined) first = chunk
      else {
        rest ??= [first]
        rest.push(chunk)
      }
    }
    request.on('data', onData)
    request.on('end', () => {
      if (isOver) return
      isOver = true
      done(rest ? Buffer.concat(rest) : (first ?? Buffer.alloc(0)))
    })
    request.on('aborted', () => {
      if (!isOver) done('broken')
    })
  }

  return (request, response, isStopping, fault) => {
    const url = request.url ?? ''
    const headers = readGatewayHeaders(request.rawHeaders)
    const client = clientOf(request.socket.remoteAddress, headers.forwardedFor)
    const place = front.find(url, client) ?? front.findSocket(url, client)
    if (!place) return false
    const request_id = front.requestId(headers.request_id)

    let isOver = false
    let tenant = client
    const reply = (served: Served) => {
      if (response.headersSent || response.destroyed) return
      const lines = headersIn(front.linesOf(served, request_id, place))
      // Kept alive, the connection would delay the stop.
      if (isStopping() || isOver) lines.push('connection', 'close')
      else if (served.status === 426) lines.push('connection', 'upgrade, close')
      response.writeHead(served.status, lines)
      const { body: text, pieces: texts = [text] } = served
      if (text.length <= partLength) return void response.end(text, 'latin1')
      large.write(response, { tenant, texts, encoding: 'latin1' }, () =>
        response.end(() => {
          // The headers were sent before the stop, and promised to keep the connection.
          if (isStopping()) request.socket.destroySoon()
        }),
      )
    }
    const refuse = (served: Served) => {
      front.noteRefused(place, request_id, served)
      reply(served)
    }
    const refuseBody = async () => {
      isOver = !(await drainBody(request))
      refuse(front.tooLarge)
    }
    const proceed = (admitted: Admission | Served) => {
      if (admitted === front.tooLarge && !headers.expectsContinue) return refuseBody()
      if ('status' in admitted) return refuse(admitted)
      tenant = admitted.principal.organization_id
      if (headers.contentLength <= smallBodyBytes) return read(admitted)
      const refuseUnread = (ahead: Paid) => {
        const answer = (ends: string, isWhole: boolean) => {
          isOver = !isWhole
          front.answer(admitted, request_id, ends, reply, ahead)
        }
        // One that waits to be asked for its body has not sent it, and is not asked.
        if (headers.expectsContinue) answer('', true)
        else receiveEnds(request, (bytes) => drainPace(client, bytes), answer)
      }
      front.admitSize(admitted, headers.contentLength).then(
        (ahead) =>
          ahead.decision.allowed && !ahead.refusal ? read(admitted, ahead) : refuseUnread(ahead),
        (error: unknown) => refuse(front.fault(error, request_id)),
      )
    }
    const read = (admitted: Admission, ahead?: Paid) => {
      if (headers.expectsContinue && request.httpVersion === '1.1') response.writeContinue()
      const take = bodies ? openRoom(response, client, bodies) : () => undefined
      // The usage has what the limits have counted, also where it becomes no call.
      const count = (reason: Reason) => ahead && front.countUnread(admitted, reason)
      receive(request, take, (body) => {
        if (!body) {
          count('BODY_TOO_LARGE')
          refuseBody()
        } else if (body === 'broken') count('MALFORMED_REQUEST')
        else if (typeof body === 'string') {
          isOver = true
          count(noRoomReasons[body])
          refuse(front.noRoom(noRoomReasons[body]))
        } else if (!isUtf8(body)) {
          count('INVALID_JSON')
          refuse(front.badText)
        } else front.answer(admitted, request_id, body.toString('latin1'), reply, ahead)
      })
    }
    if (isStopping()) refuse(front.stopping)
    else if (fault !== undefined) {
      isOver = true
      refuse(front.malformed(fault))
    } else if (place.isSocket) refuse(front.noUpgrade(place, request.method === 'GET'))
    else {
      const admitted = front.admit(place, request.method === 'POST', headers, request_id)
      if (admitted instanceof Promise) void admitted.then(proceed)
      else proceed(admitted)
    }
    return true
  }
}
