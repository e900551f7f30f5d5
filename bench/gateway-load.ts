import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

// A load generator on bare sockets, for a fixed rate and for machines without wrk. It prints one line.
type Load = {
  url: string
  connections: number
  seconds: number
  /** Requests per second over all connections; as many as possible when it is 0. */
  rate: number
  /** For blocks, or for the results of calls. */
  kind: 'block' | 'call'
  /** Always the same question, or each one once, beginning here. */
  same: boolean
  start: number
}
type Connection = { socket: Socket; begun: number; left: number; head: string; isFree: boolean }

const load: Load = JSON.parse(process.argv[2] ?? '{}')
const { hostname, port, pathname } = new URL(load.url)
const connections: Connection[] = []
const milliseconds: number[] = []
const until = performance.now() + load.seconds * 1000
let number = load.start
let sent = 0
let done = 0
let failed = 0
const finished = Promise.withResolvers<void>()

const isOver = () => performance.now() >= until

function send(connection: Connection): void {
  if (!load.same) number++
  const hex = number.toString(16)
  const question =
    load.kind === 'call'
      ? `"eth_call","params":[{"to":"0x${'1000'.padStart(40, '0')}","data":"0x${hex.padStart(64, '0')}"},"latest"]`
      : `"eth_getBlockByNumber","params":["0x${hex}",false]`
  const body = `{"jsonrpc":"2.0","id":${number},"method":${question}}`
  sent++
  connection.isFree = false
  connection.begun = performance.now()
  connection.socket.write(
    `POST ${pathname} HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
}

function receive(connection: Connection, chunk: Buffer): void {
  if (connection.left > 0) connection.left -= chunk.length
  else {
    const text = connection.head + chunk.toString('latin1')
    const end = text.indexOf('\r\n\r\n')
    if (end < 0) {
      connection.head = text
      return
    }
    connection.head = ''
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1])
    if (
      !text.startsWith('HTTP/1.1 200') ||
      !text.includes(load.kind === 'call' ? '"result":"0x' : '"result":{"number"')
    )
      failed++
    connection.left = length - (text.length - end - 4)
  }
  if (connection.left > 0) return
  done++
  milliseconds.push(performance.now() - connection.begun)
  connection.isFree = true
  if (isOver()) {
    if (done === sent) finished.resolve()
  } else if (load.rate === 0) send(connection)
}

for (let index = 0; index < load.connections; index++) {
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.setNoDelay()
  const connection: Connection = { socket, begun: 0, left: 0, head: '', isFree: true }
  socket.on('data', (chunk: Buffer) => receive(connection, chunk))
  connections.push(connection)
}
if (load.rate === 0) for (const connection of connections) send(connection)
else {
  const begun = performance.now()
  for (;;) {
    const now = performance.now()
    const due = ((now - begun) / 1000) * load.rate
    for (const connection of connections) {
      if (sent >= due || isOver()) break
      if (!connection.isFree) continue
      send(connection)
    }
    if (isOver()) break
    await delay(1)
  }
  if (done === sent) finished.resolve()
}
await finished.promise
for (const { socket } of connections) socket.destroy()
const percentile = (values: number[], part: number) =>
  values.sort((a, b) => a - b)[Math.floor(values.length * part)] ?? 0
console.log(
  JSON.stringify({
    requests: done,
    failed,
    p50: percentile(milliseconds, 0.5),
    p99: percentile(milliseconds, 0.99),
  }),
)
