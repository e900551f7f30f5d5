// Records the examples of the API reference on a demo that runs in this folder:
//   npm start -- --chains c,q,t,s,p
//   npm run record-examples
import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from '../client/src/index.ts'
import { catalogue, pathOf } from '../src/contract/operations/catalogue.ts'

type Operations = Record<string, Record<string, (request: object) => Promise<object>>>
type Recorded = { request: object; answer: object }
type Content = { 'application/json': { example?: object } }
type Document = { paths: Record<string, { post: { requestBody: { content: Content } } }> }

const dataDir = process.env.PORTOLAN_DATA_DIR ?? '.data'
const connection = JSON.parse(await readFile(`${dataDir}/connection.json`, 'utf8'))
const { base_url, ws_url, admin } = connection
const client = createClient({ base_url, ...admin }) as unknown as Operations
const usualUrl = 'http://127.0.0.1:4000'
const longestList = 2
const letters = (length: number) => 'EXAMPLE'.repeat(7).slice(0, length)

/** Secrets are replaced, and long lists are cut. */
const shown: Record<string, (value: unknown) => unknown> = {
  api_key: () => `plk_${letters(40)}`,
  api_key_hint: () => `plk_${letters(4)}…`,
  api_secret: () => `pls_${letters(43)}`,
  token: () => letters(120),
  signing_secret: () => `whsec_${letters(43)}=`,
}
const withoutSecrets = (answer: object): object =>
  JSON.parse(
    JSON.stringify(answer, (key, value: unknown) => {
      if (shown[key]) return shown[key](value)
      if (typeof value === 'bigint') return Number(value)
      // Wherever the demo runs, the examples are of the usual address.
      if (typeof value === 'string') return value.replaceAll(base_url, usualUrl)
      return Array.isArray(value) ? value.slice(0, longestList) : value
    }),
  )

/** A demo without problems shows none. */
const listProblems = {
  request: {},
  answer: {
    problems: [
      {
        ...{ kind: 'tracker_stalled', chain: 'c', network: 'mainnet', subject: '' },
        detail: 'No node of c/mainnet answers.',
        create_time: '2026-11-16T10:40:00.000Z',
        resolve_time: '2026-11-16T10:41:30.000Z',
      },
    ],
  },
}

async function readRequests(): Promise<Record<string, object>> {
  const { paths } = (await (await fetch(`${base_url}/openapi.json`)).json()) as Document
  return Object.fromEntries(
    Object.entries(paths).flatMap(([path, { post }]) => {
      const { example } = post.requestBody.content['application/json']
      return example ? [[path, example]] : []
    }),
  )
}

// The demo prepares the examples after its start; the attempts of deliveries come last.
const last = pathOf('p', 'ListWebhookAttempts')
for (let left = 60; left > 0 && !(last in (await readRequests())); left--) await delay(2_000)
const requests = await readRequests()
// An earlier recording may have removed it.
const limit = { ...requests[pathOf('admin', 'SetRateLimit')] }
await client.admin!.SetRateLimit!({ ...limit, ...requests[pathOf('admin', 'DeleteRateLimit')] })

// There is a WebSocket to list, and calls of the gateway whose latency was counted.
const socket = new WebSocket(`${ws_url}/c/mainnet/v1/ws/${admin.api_key}`)
await new Promise((resolve, reject) => {
  socket.addEventListener('message', resolve)
  socket.addEventListener('error', () => reject(new Error('the gateway refused the WebSocket')))
  socket.addEventListener('open', () =>
    socket.send('{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}'),
  )
})
const countedMs = 6_000
await delay(countedMs)

const isRead = (name: string) => /^(?:Get|List)/.test(name)
const answers: Record<string, Recorded> = { 'admin/ListProblems': listProblems }
// What is read comes last, so that there is something to read.
const isLast = (name: string) => name === 'RevokeCredential' || name === 'DeleteOrganization'
const order = (name: string) => +isRead(name) * 2 + +isLast(name)
for (const { service, name } of catalogue.toSorted((a, b) => order(a.name) - order(b.name))) {
  const key = `${service}/${name}`
  if (key in answers) continue
  const request = requests[pathOf(service, name)]
  if (!request) throw new Error(`${key} has no request`)
  const answer = await client[service]![name]!(request)
  answers[key] = { request: withoutSecrets(request), answer: withoutSecrets(answer) }
}
const recorded = Object.fromEntries(
  catalogue.map(({ service, name }) => [`${service}/${name}`, answers[`${service}/${name}`]]),
)
const file = new URL('../src/http/docs/examples.json', import.meta.url)
await writeFile(file, `${JSON.stringify(recorded, null, 2)}\n`)
socket.close()
