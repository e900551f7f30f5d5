import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Take = (request: IncomingMessage, response: ServerResponse) => void

type Line = { taken: number; waiting: Parameters<Take>[] }

/** As many as the bare sockets read in a turn. */
const perTurn = 32
/** Many more than clients send ahead of the answers. */
const maxWaiting = 1_000

/**
 * Takes the requests of each connection in turns of the event loop. Node reads up to 2 MiB of a socket in one turn and
 * emits all requests of them at once: thousands, if a client sends them without waiting for answers. The socket is paused while
 * some wait, and a client that sends more than a thousand ahead is disconnected.
 */
export function createRequestTurns(take: Take): Take {
  const lines = new WeakMap<Socket, Line>()

  const begin = (socket: Socket): Line => {
    const line: Line = { taken: 0, waiting: [] }
    lines.set(socket, line)
    setImmediate(turn, socket, line)
    return line
  }
  const turn = (socket: Socket, line: Line) => {
    const some = line.waiting.splice(0, perTurn)
    line.taken = some.length
    if (some.length === 0) lines.delete(socket)
    else setImmediate(turn, socket, line)
    for (const [request, response] of some) if (!socket.destroyed) take(request, response)
    if (some.length > 0 && line.waiting.length === 0) socket.resume()
  }

  return (request, response) => {
    const { socket } = request
    const line = lines.get(socket) ?? begin(socket)
    if (line.waiting.length === 0 && line.taken < perTurn) {
      line.taken++
      return take(request, response)
    }
    if (socket.destroyed) return
    if (line.waiting.push([request, response]) === 1) socket.pause()
    if (line.waiting.length <= maxWaiting) return
    line.waiting = []
    socket.destroy()
  }
}
