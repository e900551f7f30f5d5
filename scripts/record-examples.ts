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
const { base_url, admin } = connection
const client = createClient({ base_url, ...admin }) as unknown as Operations
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
      return Array.isArray(value) ? value.slice(0, longestList) : value
    }),
  )

/** It needs the secret of a credential, which no document shows. */
const deleteCredential = {
  request: withoutSecrets({ api_key: '', api_secret: '' }),
  answer: {},
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

// No document shows the id of a credential that may be rotated and revoked.
const { credential } = (await client.admin!.CreateCredential!(
  requests[pathOf('admin', 'CreateCredential')]!,
)) as { credential: { credential_id: string } }
const { credential_id } = credential
const soon = new Date(Date.now() + 90 * 86_400_000).toISOString()
requests[pathOf('admin', 'UpdateCredential')] = {
  ...{ credential_id, name: 'Reports', scopes: ['c:read', 'gateway:c/mainnet:read'] },
  ...{ allowed_client_networks: ['127.0.0.0/8', '::1/128'], expire_time: soon },
}
requests[pathOf('admin', 'RotateCredential')] = { credential_id, overlap_seconds: 3_600 }
requests[pathOf('admin', 'RevokeCredential')] = { credential_id }

// Nor that of an organization that may be disabled and deleted.
const domain = `closed-${Date.now()}`
const { organization } = (await client.admin!.CreateOrganization!({
  ...{ name: 'Closed', domain },
})) as { organization: { organization_id: string } }
const { organization_id } = organization
for (const name of ['Disable', 'Enable'])
  requests[pathOf('admin', `${name}Organization`)] = { organization_id }
requests[pathOf('admin', 'DeleteOrganization')] = { organization_id, domain }
requests[pathOf('admin', 'GetOrganizationDeletion')] = { organization_id }

const isRead = (name: string) => /^(?:Get|List)/.test(name)
const answers: Record<string, Recorded> = { 'admin/DeleteCredential': deleteCredential }
// What is read comes last, so that there is something to read.
const isLast = (name: string) => name === 'RevokeCredential' || name === 'DeleteOrganization'
const order = (name: string) => +isRead(name) * 2 + +isLast(name)
for (const { service, name } of catalogue.toSorted((a, b) => order(a.name) - order(b.name))) {
  const key = `${service}/${name}`
  if (key in answers) continue
  const request = requests[pathOf(service, name)]
  if (!request) throw new Error(`${key} has no request`)
  answers[key] = { request, answer: withoutSecrets(await client[service]![name]!(request)) }
}
const recorded = Object.fromEntries(
  catalogue.map(({ service, name }) => [`${service}/${name}`, answers[`${service}/${name}`]]),
)
const file = new URL('../src/http/docs/examples.json', import.meta.url)
await writeFile(file, `${JSON.stringify(recorded, null, 2)}\n`)
