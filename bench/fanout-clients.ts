import { once } from 'node:events'
import WebSocket from 'ws'

// Opens connections and counts what they get, on orders of the bench.
type Order =
  | { open: string; count: number; subscribe: string }
  | { wait: number }
  | { times: true }
  | { close: true }

const sockets: WebSocket[] = []
let received = 0
let wanted = Number.POSITIVE_INFINITY
let times: [key: string, at: number][] = []

const say = (answer: unknown) => process.send?.(answer)

async function open(url: string, subscribe: string) {
  const socket = new WebSocket(url, { perMessageDeflate: false, skipUTF8Validation: true })
  sockets.push(socket)
  await once(socket, 'open')
  socket.send(subscribe)
  await once(socket, 'message')
  socket.on('message', (data: Buffer) => {
    const key = sockets.length === 1 ? /"hash":"(0x\w+)"/.exec(data.toString('latin1'))?.[1] : ''
    if (key) times.push([key, performance.timeOrigin + performance.now()])
    if (++received === wanted) say(received)
  })
}

process.on('message', async (order: Order) => {
  if ('open' in order) {
    for (let left = order.count; left > 0; left -= 100)
      await Promise.all(
        Array.from({ length: Math.min(left, 100) }, () => open(order.open, order.subscribe)),
      )
    say('open')
  } else if ('wait' in order) {
    wanted = order.wait
    if (received >= wanted) say(received)
  } else if ('times' in order) {
    say(times)
    times = []
  } else process.exit()
})
