import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Pool } from 'undici'

/** What the load is: where to, over how many connections, and which bodies, each sent once. */
export type QueryLoad = {
  url: string
  path: string
  /** Absent where requests are not signed. */
  credential?: { api_key: string; api_secret: string }
  connections: number
  bodies: string[]
}

// A process of its own, so that making requests does not slow down answering them.
const load: QueryLoad = JSON.parse(await readFile(process.argv[2] ?? '', 'utf8'))
const { url, path, credential, connections, bodies } = load
const pool = new Pool(url, { connections, pipelining: 1 })
const base = BigInt(Date.now()) * 1_000_000n
const latencies: number[] = []
let sent = 0
let failed = 0

function headersOf(body: string, index: number): Record<string, string> {
  const type = { 'content-type': 'application/json' }
  if (!credential) return type
  const nonce = String(base + BigInt(index))
  const mac = createHmac('sha256', credential.api_secret).update(`${nonce}POST${path}${body}`)
  return {
    ...type,
    'x-api-key': credential.api_key,
    'x-api-nonce': nonce,
    'x-api-signature': mac.digest('hex'),
  }
}

async function run(): Promise<void> {
  while (sent < bodies.length) {
    const index = sent++
    const body = bodies[index]!
    const headers = headersOf(body, index)
    const begun = performance.now()
    const answer = await pool.request({ method: 'POST', path, body, headers })
    const text = await answer.body.text()
    latencies.push(performance.now() - begun)
    if (answer.statusCode !== 200 || text.includes('"error":{')) failed++
  }
}
const begun = performance.now()
await Promise.all(Array.from({ length: connections }, run))
const rate = (bodies.length * 1000) / (performance.now() - begun)
latencies.sort((a, b) => a - b)
const at = (part: number) => latencies[Math.floor(latencies.length * part)] ?? 0
console.log(JSON.stringify({ failed, rate, p50: at(0.5), p99: at(0.99) }))
await pool.close()
