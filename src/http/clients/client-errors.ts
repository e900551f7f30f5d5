import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { OperationError, type Reason } from '../../contract/errors/errors.ts'
import type { Ids } from '../../lib/ids.ts'
import { problemResponse } from '../problems.ts'

/** Knows which answers a connection still owes. */
export type OpenAnswers = {
  add(request: IncomingMessage, response: ServerResponse): void
  /** Acts when every request that came whole has its answer: at once where there is none. */
  afterAnswers(socket: Socket, act: () => void): void
}

/** Keeps the exchanges of each connection until they are over. */
export function createOpenAnswers(): OpenAnswers {
  const open = new WeakMap<Socket, Map<IncomingMessage, ServerResponse>>()
  return {
    add(request, response) {
      const { socket } = request
      const exchanges = open.get(socket) ?? new Map()
      open.set(socket, exchanges.set(request, response))
      response.once('close', () => exchanges.delete(request))
    },
    afterAnswers(socket, act) {
      // A request that never came whole is the faulty one itself: it will not be answered otherwise.
      const owed = [...(open.get(socket) ?? [])].findLast(([request]) => request.complete)
      if (owed) owed[1].once('close', act)
      else act()
    },
  }
}

const lingerMs = 1_000

const reasons: Record<string, Reason> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
}

/** What Node's parser refuses never becomes a request; it gets the same problem body anyway. */
export function refuse(error: Error & { code?: string }, socket: Socket, ids: Ids): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const reason = reasons[error.code ?? ''] ?? 'MALFORMED_REQUEST'
  const request_id = ids.uuid()
  const { status, headers, body } = problemResponse(new OperationError(reason), request_id)
  const lines = Object.entries({
    ...headers,
    'x-request-id': request_id,
    'x-content-type-options': 'nosniff',
    'content-length': String(Buffer.byteLength(body)),
    date: new Date().toUTCString(),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  // Half closed, the connection lives until the caller closes its half, which a hostile one never does.
  // A moment is left to it: cut off with bytes unread, it would lose the answer.
  setTimeout(() => socket.destroy(), lingerMs).unref()
  socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join('')}\r\n${body}`)
}
