import { type Server, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { OperationError, type Reason } from '../../contract/errors/errors.ts'
import type { Ids } from '../../lib/ids.ts'
import type { Turns } from '../../lib/turns.ts'
import { problemResponse } from '../problems.ts'
import type { ClientAddress } from './client-address.ts'
import type { Shares } from './shares.ts'

/** How connections are counted. */
export type ConnectionShares = {
  connections: Shares
  /** Connections of proxies are counted in all, but not for their address: many clients share them. */
  isProxy(address: string): boolean
}

/**
 * Counts connections before anything is read from them, and refuses those that are too many. The refusal is
 * made once: an attacker who opens connections as fast as possible must not make work. Those that are accepted
 * are opened in turns: Node accepts all that wait in the kernel at once.
 */
export function limitConnections(
  server: Server,
  { connections, isProxy }: ConnectionShares,
  tools: { clientOf: ClientAddress; ids: Ids; turns: Turns },
): void {
  const { clientOf, ids, turns } = tools
  const listeners = server.listeners('connection')
  const refusals = { client: refusal('TOO_MANY_CONNECTIONS', ids), all: refusal('OVERLOADED', ids) }
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    const peer = clientOf(socket.remoteAddress, undefined)
    const client = isProxy(peer) ? undefined : peer
    const bound = connections.take(client, 1)
    if (bound) {
      socket.on('error', ignore)
      if (turns.waiting() >= maxWaiting) return void socket.destroy()
      // In turns too: a hundred refusals at once took 10 ms.
      turns.run(peer, () => {
        if (!socket.destroyed) refuse(socket, refusals[bound])
      })
      return
    }
    socket.once('close', () => connections.giveBack(client, 1))
    // Until it is opened nothing is read from it, but it may fail.
    socket.on('error', ignore)
    turns.run(peer, () => {
      socket.off('error', ignore)
      if (socket.destroyed) return
      for (const listener of listeners) listener.call(server, socket)
    })
  })
}

const ignore = () => {}

// Connections that are opened or refused in later turns. Beyond that, those that are too many are closed without an answer.
const maxWaiting = 1_000

const refuse = (socket: Socket, [start, rest]: Refusal): void => {
  const text = `${start}date: ${new Date().toUTCString()}\r\n${rest}`
  socket.end(text, 'latin1', () => socket.destroy())
}

/** The parts of a refusal before and after the date. */
type Refusal = [start: string, rest: string]

/** Made once. */
function refusal(reason: Reason, ids: Ids): Refusal {
  const { status, headers, body } = problemResponse(new OperationError(reason), ids.uuid())
  const lines = Object.entries({
    ...headers,
    'x-content-type-options': 'nosniff',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}`, `\r\n${body}`]
}
