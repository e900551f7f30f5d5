import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Served } from '../gateway/serve.ts'
import type { GatewayFront, LetIn } from './gateway-front.ts'
import { readGatewayHeaders } from './gateway-headers.ts'
import type { Lane } from './server.ts'

/**
 * Serves the gateway's addresses beside the general path of the server: what that does for every
 * exchange would cost more than the calls themselves.
 */
export function createGatewayLane(front: GatewayFront): Lane {
  const { bodyLimitBytes } = front

  const receive = (request: IncomingMessage, done: (body: Buffer | undefined) => void) => {
    let first: Buffer | undefined
    let rest: Buffer[] | undefined
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > bodyLimitBytes) {
        first = rest = undefined
        if (size - chunk.length <= bodyLimitBytes) done(undefined)
      } else if (first === undefined) first = chunk
      else {
        rest ??= [first]
        rest.push(chunk)
      }
    })
    request.on('end', () => {
      if (size <= bodyLimitBytes) done(rest ? Buffer.concat(rest) : (first ?? Buffer.alloc(0)))
    })
  }

  return (request, response, isStopping) => {
    const place = front.find(request.url ?? '')
    if (!place) return false
    const headers = readGatewayHeaders(request.rawHeaders)
    const request_id = front.requestId(headers.request_id)

    const reply = (served: Served) => {
      if (response.headersSent || response.destroyed) return
      const lines = front.headersOf(served, request_id, place)
      // Kept alive, the connection would hold up the stop; and the rest of a refused body may be on its way.
      if (isStopping() || served === front.tooLarge || served === front.noHost)
        lines.push('connection', 'close')
      response.writeHead(served.status, lines)
      response.end(served.body, 'latin1')
    }
    const proceed = (admitted: LetIn | Served) => {
      if ('status' in admitted) return reply(admitted)
      receive(request, (body) => {
        if (!body) reply(front.tooLarge)
        else if (!isUtf8(body)) reply(front.badText)
        else front.answer(admitted, request_id, body.toString('latin1'), reply)
      })
    }
    if (isStopping()) reply(front.stopping)
    else if (!headers.hasHost && request.httpVersion === '1.1') reply(front.noHost)
    else {
      const admitted = front.admit(place, request.method === 'POST', headers)
      if (admitted instanceof Promise) void admitted.then(proceed)
      else proceed(admitted)
    }
    return true
  }
}
