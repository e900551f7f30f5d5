import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

// The receiving end, in a process of its own: accepts everything, and reports on request.
const arrivals: [path: string, time: number, block: number][] = []
let count = 0

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.end(JSON.stringify({ count, arrivals }))
    if (request.url === '/reset') {
      arrivals.length = 0
      count = 0
    }
    return
  }
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const time = performance.timeOrigin + performance.now()
    count++
    const path = request.url ?? ''
    if (path.startsWith('/timed')) {
      const { data } = JSON.parse(Buffer.concat(chunks).toString('utf8'))
      arrivals.push([path, time, data.transfers?.[0]?.block_number ?? data.round])
    }
    response.writeHead(204).end()
  })
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
