import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshFolder, runCommand, type Service, startService } from './portolan.ts'

const folder = await freshFolder()
const dataDir = join(folder, 'data')
let service: Service

beforeAll(async () => {
  service = await startService(dataDir)
})
afterAll(async () => {
  await service.stop()
})

const call = (args: readonly string[], options: Parameters<typeof runCommand>[1] = {}) =>
  runCommand(['call', ...args], { dataDir, cwd: folder, ...options })

const demo = '{"domain":"demo"}'
const calm = (text: string) =>
  text
    .replaceAll(service.connection.base_url, '<url>')
    .replaceAll(/request [0-9a-f-]{36}/g, 'request <id>')
    .replaceAll(folder, '<folder>')

test('prints the answer as JSON for every source of the request', async () => {
  await writeFile(join(folder, 'request.json'), demo)
  const answers = [
    await call(['admin', 'GetOrganizationByDomain', demo]),
    await call(['admin', 'GetOrganizationByDomain', '@request.json']),
    await call(['admin', 'GetOrganizationByDomain', '-'], { input: demo }),
  ]
  for (const { code, stdout, stderr } of answers) {
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(JSON.parse(stdout).organization.domain).toBe('demo')
  }
})

test('shows a problem with every bad field', async () => {
  const { code, stdout, stderr } = await call([
    'admin',
    'SetRateLimit',
    '{"organization_id":"x","per_second_limit":9007199254740993,"per_hour":1}',
  ])
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(calm(stderr)).toMatchInlineSnapshot(`
    "INVALID_REQUEST (400): Not valid: per_hour_limit, per_day_limit, per_month_limit, per_hour, per_second_limit.
      per_hour_limit: Is required.
      per_day_limit: Is required.
      per_month_limit: Is required.
      per_hour: No such field.
      per_second_limit: Must be at most 9007199254740991.
      <url>/docs/errors/INVALID_REQUEST
      request <id>
    "
  `)
})

test('signs as a member unless the service is admin, or as given', async () => {
  const refused = await call(['admin', 'ListOrganizations', '--as', 'member'])
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain('PERMISSION_DENIED (403)')
  expect((await call(['admin', 'ListOrganizations'])).code).toBe(0)
})

test('a key from the environment or options overrides that of the file', async () => {
  const { api_key, api_secret } = service.connection.admin!
  const base_url = service.connection.base_url
  const args = ['admin', 'GetOrganizationByDomain', demo, '--url', base_url]
  const nowhere = { dataDir: join(folder, 'nowhere') }
  const options = await call([...args, '--key', api_key, '--secret', api_secret], nowhere)
  expect(options.code).toBe(0)
  const env = { PORTOLAN_API_KEY: api_key, PORTOLAN_API_SECRET: `${api_secret}x` }
  const wrong = await call(args, { ...nowhere, env })
  expect(wrong).toMatchObject({ code: 1 })
  expect(wrong.stderr).toContain('UNAUTHENTICATED (401)')
  expect(wrong.stderr).not.toContain(api_secret)
  expect(await call(args, nowhere)).toMatchInlineSnapshot(`
    {
      "code": 2,
      "stderr": "With --url, give the key too: --key and --secret, or PORTOLAN_API_KEY and PORTOLAN_API_SECRET.
    ",
      "stdout": "",
    }
  `)
  expect(
    await call(args.slice(0, 3), { env: { PORTOLAN_API_KEY: api_key } }),
  ).toMatchInlineSnapshot(`
    {
      "code": 2,
      "stderr": "A key signs together with its secret, and the secret is missing.
    ",
      "stdout": "",
    }
  `)
})

test('local checks need no request to the service', async () => {
  const nowhere = { dataDir: join(folder, 'nowhere') }
  expect(await call(['admin', 'GetOrganisationByDomain'], nowhere)).toMatchInlineSnapshot(`
    {
      "code": 2,
      "stderr": "The service admin has no operation "GetOrganisationByDomain". Did you mean GetOrganizationByDomain?
      DeleteCredential
      DeleteRateLimit
      GetOrganizationByDomain
      GetRateLimit
      ListRateLimits
      CreateOrganization
      ListOrganizations
      CreateCredential
      RotateCredential
      RevokeCredential
      UpdateCredential
      ListCredentials
      SetRateLimit
      ListEffectiveRateLimits
      GetUsage
      ListMethodUsage
      ListAuditEvents
      SetQuota
      RenameOrganization
      DisableOrganization
      EnableOrganization
      DeleteOrganization
      GetOrganizationDeletion
      GetCurrentCredential
      ListChains
      ListNodes
      ListWebSocketClients
      ListProblems
      ListMetrics
      ListSearchResults
      CreateStreamToken
    ",
      "stdout": "",
    }
  `)
  expect(await call(['X', 'ListWallets'], nowhere)).toMatchInlineSnapshot(`
    {
      "code": 2,
      "stderr": "There is no service "X". The services are admin, q, t, s, p, c.
    ",
      "stdout": "",
    }
  `)
  expect(await call(['admin', 'ListOrganizations', '{"a":'], nowhere)).toMatchInlineSnapshot(`
    {
      "code": 2,
      "stderr": "The request is not JSON: Unexpected end of JSON input.
    ",
      "stdout": "",
    }
  `)
  expect(await call(['admin', 'ListOrganizations', '[]'], nowhere)).toMatchInlineSnapshot(`
    {
      "code": 2,
      "stderr": "The request must be a JSON object, such as '{"domain":"demo"}'.
    ",
      "stdout": "",
    }
  `)
  const { code, stderr } = await call(['admin', 'ListOrganizations', '@none'], nowhere)
  expect({ code, stderr: calm(stderr) }).toMatchInlineSnapshot(`
    {
      "code": 2,
      "stderr": "The file <folder>/none cannot be read (ENOENT).
    ",
    }
  `)
})

test('reports that no service is running', async () => {
  const missing = await call(['admin', 'ListOrganizations'], { dataDir: join(folder, 'nowhere') })
  expect({ ...missing, stderr: calm(missing.stderr) }).toMatchInlineSnapshot(`
    {
      "code": 1,
      "stderr": "No service is running on <folder>/nowhere. Start it with "portolan start", name its folder with --data-dir, or give --url, --key and --secret.
    ",
      "stdout": "",
    }
  `)
  const closed = createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port } = closed.address() as AddressInfo
  await new Promise((resolve) => closed.close(resolve))
  const env = {
    PORTOLAN_BASE_URL: `http://127.0.0.1:${port}`,
    PORTOLAN_API_KEY: 'k',
    PORTOLAN_API_SECRET: 's',
  }
  const dead = await call(['admin', 'ListOrganizations'], { env })
  expect({ ...dead, stderr: dead.stderr.replaceAll(`${port}`, '<port>') }).toMatchInlineSnapshot(`
    {
      "code": 1,
      "stderr": "No answer from http://127.0.0.1:<port>/v1/admin/ListOrganizations: connect ECONNREFUSED 127.0.0.1:<port>.
    ",
      "stdout": "",
    }
  `)
})

test('lists and describes operations', async () => {
  const all = await call(['--list'])
  expect(all).toMatchObject({ code: 0, stderr: '' })
  expect(all.stdout).toMatch(/^admin +CreateOrganization +Create an organization\.$/m)
  expect((await call(['--list', 'admin', 'CreateOrganization'])).stdout).toMatchInlineSnapshot(`
    "admin CreateOrganization: Create an organization.
    It succeeds once: a domain that is taken is 409.
    Needs the role admin.

    FIELD             TYPE
    name    required  string
    domain  required  string: lower-case letters and digits, joined by single hyphens
    "
  `)
})
