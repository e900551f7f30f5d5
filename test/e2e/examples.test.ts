import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createClient, PortolanError } from '../../client/src/index.ts'
import { recordedExamples } from '../../src/http/docs/routes.ts'
import { freshFolder, startService } from '../cli/portolan.ts'
import { waitFor } from '../helpers/wait-for.ts'

type Operations = Record<string, Record<string, (request: object) => Promise<object>>>
type Content = Record<'application/json', { example?: object }>
type Path = {
  post: { requestBody: { content: Content }; responses: Record<200, { content: Content }> }
}

const requestOf = ({ post }: Path) => post.requestBody.content['application/json'].example
const answerOf = ({ post }: Path) => post.responses[200].content['application/json'].example

const isRecorded = (path: string, found: Path) =>
  JSON.stringify(requestOf(found)) ===
  JSON.stringify(recordedExamples[path.slice('/v1/'.length)]?.request)

const dataDir = join(await freshFolder(), '.data')
const service = await startService(dataDir, { args: ['--chains', 'c,q,t,s,p'] })

test('every request that the API reference prefills succeeds on the demo, and again', {
  timeout: 300_000,
}, async () => {
  const { base_url, admin } = service.connection
  const callers = createClient({ ...service.connection, ...admin! }) as unknown as Operations
  const read = async (headers: Record<string, string> = {}) => {
    const answer = await fetch(`${base_url}/openapi.json`, { headers })
    return (await answer.json()) as { paths: Record<string, Path> }
  }
  let document = await read()
  await waitFor(
    'the demo prepared its examples',
    async () => {
      document = await read()
      return ['c', 't', 's', 'p'].every((tag) => {
        const path = `/v1/${tag}/ListWebhookAttempts`
        return !isRecorded(path, document.paths[path]!)
      })
    },
    { timeoutMs: 180_000 },
  )

  const paths = Object.entries(document.paths)
  expect(paths.map(([path]) => path.slice('/v1/'.length))).toEqual(Object.keys(recordedExamples))
  expect(paths.filter(([, found]) => !requestOf(found) || !answerOf(found))).toEqual([])

  const refused: Record<string, string> = {}
  const call = async (path: string, found: Path, turn: string) => {
    const [, , tag = '', operation = ''] = path.split('/')
    try {
      await callers[tag]![operation]!(requestOf(found)!)
    } catch (error) {
      if (!(error instanceof PortolanError)) throw error
      refused[`${turn} ${tag}/${operation}`] = error.reason
    }
  }
  for (const turn of ['first', 'second'])
    for (const [path, found] of paths) await call(path, found, turn)
  expect(refused).toEqual({
    // It is gone. The next document has another pair.
    'second admin/DeleteCredential': 'CREDENTIAL_NOT_FOUND',
    // It was rotated a moment ago. The next document names its successor.
    'second admin/RotateCredential': 'CREDENTIAL_ROTATED',
    // It is gone. The next document names another one.
    'second admin/RevokeCredential': 'CREDENTIAL_NOT_FOUND',
    // The record is gone; SetRateLimit or the next document makes it again.
    'second admin/DeleteRateLimit': 'RATE_LIMIT_NOT_FOUND',
    // A domain is taken once. The next document has another one.
    'second admin/CreateOrganization': 'DOMAIN_TAKEN',
  })
  const used = Object.keys(refused).map((name) => `/v1/${name.split(' ')[1]}`)
  const deletion = '/v1/admin/DeleteCredential'
  let fresh = document.paths
  await waitFor('a document has another pair to delete', async () => {
    fresh = (await read()).paths
    return (
      JSON.stringify(requestOf(fresh[deletion]!)) !==
      JSON.stringify(requestOf(document.paths[deletion]!))
    )
  })
  // The document shows its secret, so nothing accepts it.
  const shownPair = requestOf(fresh[deletion]!) as { api_key: string; api_secret: string }
  await expect(
    createClient({ ...service.connection, ...shownPair }).admin.GetCurrentCredential({}),
  ).rejects.toMatchObject({ reason: 'CLIENT_NETWORK_NOT_ALLOWED' })
  for (const path of used) await call(path, fresh[path]!, 'reloaded')
  expect(Object.keys(refused).filter((name) => name.startsWith('reloaded'))).toEqual([])

  // A proxy on this machine forwards requests of strangers.
  for (const header of ['x-forwarded-for', 'forwarded']) {
    const { paths: shown } = await read({ [header]: 'for=192.0.2.1' })
    const own = Object.entries(shown).filter(([name, found]) => !isRecorded(name, found))
    expect(own).toEqual([])
  }
  await service.stop()
})

test('a demo that other machines reach shows the recorded examples only', {
  timeout: 120_000,
}, async () => {
  const open = await startService(dataDir, {
    args: ['--chains', 'c'],
    env: {
      PORTOLAN_SERVER__HOST: '0.0.0.0',
      PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true',
    },
  })
  const { port } = new URL(open.connection.base_url)
  const own = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/openapi.json`)
    const { paths } = (await answer.json()) as { paths: Record<string, Path> }
    expect(paths).toHaveProperty(['/v1/c/GetWallet'])
    return Object.entries(paths).filter(([path, found]) => !isRecorded(path, found))
  }
  expect(await own()).toEqual([])
  const { c } = createClient({ ...open.connection, ...open.connection.admin! })
  // The demo has its wallets, and the document still names none of them.
  expect((await c.ListWallets({})).wallets).not.toEqual([])
  expect(await own()).toEqual([])
  await open.stop()
})
