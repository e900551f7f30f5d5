import { createHmac } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Pool } from 'undici'

/** What the load is: where to, over how many connections, and which bodies, each sent once. */
export type QueryLoad = {
  url: string
  path: string
  /** Absent where requests are not signed. */
  credential?: { api_key: string; api_secret: string }
  connections: number
  bodies: string[]
  /** A pause before each request; it is not counted. */
  restMs?: number
}

/** What came of a load; times are in milliseconds. */
export type QuerySample = { failed: number; rate: number; p50: number; p99: number }

// A process of its own, so that making requests does not slow down answering them; one for all loads,
// so that it is as warm for the first as for the last.
const pools = new Map<string, Pool>()
let nonce = BigInt(Date.now()) * 1_000_000n

function poolOf(url: string, connections: number): Pool {
  const key = `${connections} ${url}`
  const pool = pools.get(key) ?? new Pool(url, { connections, pipelining: 1 })
  pools.set(key, pool)
  return pool
}

function headersOf({ path, credential }: QueryLoad, body: string): Record<string, string> {
  const type = { 'content-type': 'application/json' }
  if (!credential) return type
  const text = String(++nonce)
  const mac = createHmac('sha256', credential.api_secret).update(`${text}POST${path}${body}`)
  return {
    ...type,
    'x-api-key': credential.api_key,
    'x-api-nonce': text,
    'x-api-signature': mac.digest('hex'),
  }
}

async function measure(load: QueryLoad): Promise<QuerySample> {
  const { url, path, connections, bodies, restMs } = load
  const pool = poolOf(url, connections)
  const latencies: number[] = []
  let sent = 0
  let failed = 0
  const run = async () => {
    while (sent < bodies.length) {
      const body = bodies[sent++]!
      const headers = headersOf(load, body)
      if (restMs !== undefined) await delay(restMs)
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
  return { failed, rate, p50: at(0.5), p99: at(0.99) }
}

process.on('message', async (load: QueryLoad) => process.send?.(await measure(load)))
