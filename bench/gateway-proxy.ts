import { createServer } from 'node:http'
import { Pool } from 'undici'

// The measure of all things: what node:http in front and undici behind cost by themselves. No keys,
// no limits, no checks.
const pool = new Pool(process.argv[2] ?? '', { connections: 128, pipelining: 1 })
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', async () => {
    const body = Buffer.concat(chunks)
    JSON.parse(body.toString())
    const answer = await pool.request({
      path: '/',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    const bytes = Buffer.from(await answer.body.arrayBuffer())
    response.writeHead(answer.statusCode, {
      'content-type': 'application/json',
      'content-length': bytes.length,
    })
    response.end(bytes)
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(typeof address === 'object' ? address?.port : '')
})
