import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Served } from '../gateway/rpc/serve.ts'
import type { ClientAddress } from './clients/client-address.ts'
import type { Bound, Shares } from './clients/shares.ts'
import { drainBody, noRoomReasons, openRoom } from './exchange.ts'
import type { Admission, GatewayFront } from './fast-path/gateway-front.ts'
import { readGatewayHeaders } from './fast-path/gateway-headers.ts'
import type { DirectHandler } from './server.ts'

/**
 * Serves the gateway's addresses beside the general path of the server: what that does for every
 * exchange would cost more than the calls themselves.
 */
export function createGatewayLane(
  front: GatewayFront,
  clientOf: ClientAddress,
  bodies?: Shares,
): DirectHandler {
  const { bodyLimitBytes } = front

  const receive = (
    request: IncomingMessage,
    take: (bytes: number) => Bound | undefined,
    done: (body: Buffer | Bound | undefined) => void,
  ) => {
    let first: Buffer | undefined
    let rest: Buffer[] | undefined
    let size = 0
    let isRefused = false
    const onData = (chunk: Buffer) => {
      size += chunk.length
      const isOver = size > bodyLimitBytes
      const bound = isOver ? undefined : take(chunk.length)
      if (isOver || bound) {
        isRefused = true
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
      if (!isRefused) done(rest ? Buffer.concat(rest) : (first ?? Buffer.alloc(0)))
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
    const reply = (served: Served) => {
      if (response.headersSent || response.destroyed) return
      const lines = front.headersOf(served, request_id, place)
      // Kept alive, the connection would delay the stop.
      if (isStopping() || isOver) lines.push('connection', 'close')
      else if (served.status === 426) lines.push('connection', 'upgrade, close')
      response.writeHead(served.status, lines)
      response.end(served.body, 'latin1')
    }
    const refuseBody = async () => {
      isOver = !(await drainBody(request))
      reply(front.tooLarge)
    }
    const proceed = (admitted: Admission | Served) => {
      if (admitted === front.tooLarge && !headers.expectsContinue) return refuseBody()
      if ('status' in admitted) return reply(admitted)
      if (headers.expectsContinue && request.httpVersion === '1.1') response.writeContinue()
      const take = bodies ? openRoom(response, client, bodies) : () => undefined
      receive(request, take, (body) => {
        if (!body) refuseBody()
        else if (typeof body === 'string') {
          isOver = true
          reply(front.noRoom(noRoomReasons[body]))
        } else if (!isUtf8(body)) reply(front.badText)
        else front.answer(admitted, request_id, body.toString('latin1'), reply)
      })
    }
    if (isStopping()) reply(front.stopping)
    else if (fault !== undefined) {
      isOver = true
      reply(front.malformed(fault))
    } else if (place.isSocket) reply(front.noUpgrade(place, request.method === 'GET'))
    else {
      const admitted = front.admit(place, request.method === 'POST', headers)
      if (admitted instanceof Promise) void admitted.then(proceed)
      else proceed(admitted)
    }
    return true
  }
}
