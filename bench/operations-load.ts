import { createHmac } from 'node:crypto'
import { Pool } from 'undici'

// Sends signed requests from a process of its own, a fixed number over a fixed number of connections.
const [url = '', key = '', secret = '', total = '0', connections = '32'] = process.argv.slice(2)
const pool = new Pool(url, { connections: Number(connections), pipelining: 1 })
const path = '/v1/admin/GetOrganizationByDomain'
const body = '{"domain":"demo"}'
const base = BigInt(Date.now()) * 1_000_000n
const latencies: number[] = []
let sent = 0
let failed = 0

async function run(): Promise<void> {
  while (sent < Number(total)) {
    const nonce = String(base + BigInt(sent++))
    const mac = createHmac('sha256', secret).update(`${nonce}POST${path}${body}`)
    const begun = performance.now()
    const { statusCode, body: answer } = await pool.request({
      method: 'POST',
      path,
      body,
      headers: {
        'content-type': 'application/json',
        'x-api-key': key,
        'x-api-nonce': nonce,
        'x-api-signature': mac.digest('hex'),
      },
    })
    await answer.dump()
    if (statusCode !== 200) failed++
    latencies.push(performance.now() - begun)
  }
}
await Promise.all(Array.from({ length: Number(connections) }, run))
latencies.sort((a, b) => a - b)
const at = (part: number) => latencies[Math.floor(latencies.length * part)] ?? 0
console.log(JSON.stringify({ failed, p50: at(0.5), p99: at(0.99) }))
await pool.close()
