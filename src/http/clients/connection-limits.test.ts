import { EventEmitter } from 'node:events'
import type { Server } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { systemIds } from '../../lib/ids.ts'
import { createTurns } from '../../lib/turns.ts'
import { limitConnections } from './connection-limits.ts'
import { createShares } from './shares.ts'

/** A server that accepts one connection of each client. */
const begin = () => {
  const server = new EventEmitter()
  limitConnections(
    server as Server,
    { connections: createShares({ perClient: 1, all: 10 }), isProxy: () => false },
    { clientOf: (address) => address!, ids: systemIds, turns: createTurns() },
  )
  const answers: string[] = []
  const accept = (remoteAddress: string) => {
    const socket = Object.assign(new EventEmitter(), {
      remoteAddress,
      destroyed: false,
      end: (text: string) => answers.push(text),
      destroy: () => {
        socket.destroyed = true
      },
    })
    server.emit('connection', socket)
    return socket
  }
  return { accept, answers }
}

it('connections that are too many are refused in turns, so that calls of others are answered in between', async () => {
  const { accept, answers } = begin()
  for (let count = 0; count <= 100; count++) accept('192.0.2.1')
  const atOnce = answers.length
  expect(atOnce).toBeLessThan(10)
  await turn()
  expect(answers.length).toBeLessThan(atOnce + 10)
  for (let turns = 0; turns < 20; turns++) await turn()
  expect(answers).toHaveLength(100)
  expect(answers[99]).toMatch(/^HTTP\/1.1 429 .*TOO_MANY_CONNECTIONS/s)
})

it('connections that are closed before their turn get no refusal', async () => {
  const { accept, answers } = begin()
  const sockets = Array.from({ length: 101 }, () => accept('192.0.2.1'))
  const atOnce = answers.length
  for (const socket of sockets) socket.destroy()
  for (let turns = 0; turns < 20; turns++) await turn()
  expect(answers).toHaveLength(atOnce)
})

it('more than a thousand that wait for their refusal are closed at once', () => {
  const { accept } = begin()
  const sockets = Array.from({ length: 1_100 }, () => accept('192.0.2.1'))
  const closed = sockets.filter(({ destroyed }) => destroyed).length
  expect(closed).toBeGreaterThan(90)
  expect(closed).toBeLessThan(100)
})
