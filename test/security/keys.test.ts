import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { roleFor, roleMayCall } from '../../src/contract/access.ts'
import { catalogue } from '../../src/contract/operations/catalogue.ts'
import { type Role, roles } from '../../src/contract/roles.ts'
import { startTestGateway, type TestGateway } from '../gateway/gateway.ts'
import { startStubNode } from '../gateway/stub-node.ts'
import { shiftedClock } from '../helpers/app.ts'
import { noteSecret } from '../helpers/log-capture.ts'
import { waitFor } from '../helpers/wait-for.ts'

const node = await startStubNode()
const clock = shiftedClock()
const first = await startTestGateway([node.url], { clock })
const second = await startTestGateway([node.url], {
  beside: first,
  clock,
  server: { trust_proxy: 1 },
})
const both = [first, second]
const tenant = await first.createTenant()
const { organization_id } = tenant
const owner = await first.createPair(organization_id, 'ROLE_OWNER')

type Pair = { api_key: string; api_secret: string; credential_id: string }

/** Creates a credential by the operation. */
const create = async (fields: object = {}, by: { api_key: string; api_secret: string } = owner) => {
  const answer = await first.call(by, 'admin/CreateCredential', { organization_id, ...fields })
  return { ...answer, credential: answer.json.credential as Pair }
}
const usable = async (fields: object = {}): Promise<Pair> => {
  const { status, text, credential } = await create(fields)
  expect(status, text).toBe(200)
  return credential
}
const at = (seconds: number) => new Date(clock.now() + seconds * 1000).toISOString()

/** How an operation and the gateway take a credential. */
const operation = async (app: TestGateway, pair: Pair, name = 'admin/GetUsage') => {
  const body = name === 'admin/GetUsage' ? { organization_id } : {}
  const { status, json } = await app.call(pair, name, body)
  return status === 200 ? 'works' : json.reason
}
const net = '{"jsonrpc":"2.0","id":1,"method":"net_version"}'
const gateway = async (
  app: TestGateway,
  { api_key }: Pick<Pair, 'api_key'>,
  headers: Record<string, string> = {},
) => {
  const { status, json } = await app.post(net, { key: api_key, headers })
  return status === 200 ? 'works' : json.error.data.reason
}

describe('every operation', () => {
  const pairs = {} as Record<Role, Awaited<ReturnType<typeof first.createPair>>>

  it.each(roles)('lets %s in or names the role that is missing', async (role) => {
    pairs[role] = await first.createPair(organization_id, role)
    const wrong: unknown[] = []
    for (let from = 0; from < catalogue.length; from += 20)
      await Promise.all(
        catalogue.slice(from, from + 20).map(async (entry) => {
          const name = `${entry.service}/${entry.name}`
          const { status, json } = await first.call(pairs[role], name, {})
          const isDenied = status === 403 && json.reason === 'PERMISSION_DENIED'
          const isRight = roleMayCall(role, entry)
            ? status !== 401 && status !== 403
            : isDenied && json.missing === roleFor(entry)
          if (!isRight) wrong.push([name, status, json])
        }),
      )
    expect(wrong).toEqual([])
  })
})

describe('scopes', () => {
  it.each<[string[], string[]]>([
    [['*'], ['c/ListWallets', 'c/RegisterWallet', 'q/GetBlock', 'admin/GetUsage', 'gateway']],
    [['c:read'], ['c/ListWallets']],
    [['c:write'], ['c/ListWallets', 'c/RegisterWallet']],
    [['*:read'], ['c/ListWallets', 'q/GetBlock', 'admin/GetUsage']],
    [['gateway'], ['gateway']],
    [
      ['gateway:c/mainnet:read', 'q:read'],
      ['q/GetBlock', 'gateway'],
    ],
    [['gateway:c/ropsten', 'gateway:q'], []],
  ])('%j open %j', async (scopes, open) => {
    const pair = await usable({ scopes })
    const outcomes: Record<string, string> = {
      gateway: await gateway(first, pair),
    }
    for (const name of ['c/ListWallets', 'c/RegisterWallet', 'q/GetBlock', 'admin/GetUsage'])
      outcomes[name] = await operation(first, pair, name)
    const refused = Object.entries(outcomes).filter(([, outcome]) => outcome === 'SCOPE_MISSING')
    const asked = Object.keys(outcomes)
    expect(asked.filter((name) => !refused.some(([one]) => one === name)).toSorted()).toEqual(
      open.toSorted(),
    )
  })

  it('that lack something name it', async () => {
    const pair = await usable({ scopes: ['c:read'] })
    const { json } = await first.call(pair, 'c/RegisterWallet', {})
    expect(json).toMatchObject({ reason: 'SCOPE_MISSING', missing: 'c:write' })
    const { status, json: call } = await first.post(net, { key: pair.api_key })
    expect([status, call.error.data.missing]).toEqual([403, 'gateway:c/mainnet:read'])
  })

  it('and the role of a reader decide whether transactions can be sent', async () => {
    const send = async (key: string) =>
      `${(await first.rpc('eth_sendRawTransaction', ['0x00'], { key })).error?.data?.reason}`
    const reader = await usable({ role: 'ROLE_READER' })
    const narrow = await usable({ scopes: ['gateway:read'] })
    expect(await send(reader.api_key)).toBe('PERMISSION_DENIED')
    expect(await send(narrow.api_key)).toBe('SCOPE_MISSING')
    expect(await send(tenant.member.api_key)).not.toMatch(/DENIED|MISSING/)
    expect(await gateway(first, reader)).toBe('works')
    expect(await gateway(first, narrow)).toBe('works')
  })
})

describe('client networks', () => {
  it('are held against the address of the client, behind a proxy as without', async () => {
    const here = await usable({ allowed_client_networks: ['127.0.0.0/8', '::1'] })
    const there = await usable({ allowed_client_networks: ['192.0.2.0/24'] })
    expect([await operation(first, here), await gateway(first, here)]).toEqual(['works', 'works'])
    const refused = 'CLIENT_NETWORK_NOT_ALLOWED'
    expect([await operation(first, there), await gateway(first, there)]).toEqual([refused, refused])
    const { json } = await first.call(there, 'admin/GetUsage', { organization_id })
    expect(json.missing).toBe('127.0.0.1')
    const forwarded = { 'x-forwarded-for': '192.0.2.7' }
    expect(await gateway(second, there, forwarded)).toBe('works')
    expect(await gateway(first, there, forwarded)).toBe(refused)
  })
})

describe('a creator', () => {
  const reasonOf = async (fields: object, by?: Pair) => {
    const { status, json } = await create(fields, by)
    const fieldsOf = json.errors?.map(({ field }: { field: string }) => field)
    return status === 200 ? 'made' : [json.reason, ...new Set(fieldsOf)].join(' ')
  }

  it('gives what it has and no more', async () => {
    expect(await reasonOf({ role: 'ROLE_ADMIN' })).toBe('GRANT_EXCEEDED role')
    expect(await reasonOf({ role: 'ROLE_OWNER' })).toBe('made')
    const other = await first.createTenant()
    expect(await reasonOf({ organization_id: other.organization_id })).toBe(
      'ORGANIZATION_NOT_FOUND',
    )
    const narrow = await usable({
      ...{ role: 'ROLE_OWNER', scopes: ['admin:write', 'c:read'], expire_time: at(3600) },
      ...{ allowed_client_networks: ['127.0.0.0/8'] },
    })
    expect(await reasonOf({ scopes: ['c:write'] }, narrow)).toBe('GRANT_EXCEEDED scopes')
    expect(await reasonOf({ expire_time: at(7200) }, narrow)).toBe('GRANT_EXCEEDED expire_time')
    expect(await reasonOf({ allowed_client_networks: ['0.0.0.0/0'] }, narrow)).toBe(
      'GRANT_EXCEEDED allowed_client_networks',
    )
    const { json } = await create({ scopes: ['c:read'] }, narrow)
    expect(json.credential).toMatchObject({
      scopes: ['c:read'],
      allowed_client_networks: ['127.0.0.0/8'],
      expire_time: expect.any(String),
    })
  })

  it('touches neither wider credentials nor those of others', async () => {
    const { json } = await first.call(tenant.admin, 'admin/ListCredentials', {
      organization_id,
      page_size: 100,
    })
    const admin = json.credentials.find(({ role }: { role: string }) => role === 'ROLE_ADMIN')
    const other = await first.createTenant()
    const others = (
      await first.call(tenant.admin, 'admin/ListCredentials', {
        organization_id: other.organization_id,
      })
    ).json.credentials[0]
    for (const name of ['RotateCredential', 'RevokeCredential', 'UpdateCredential'])
      for (const [{ credential_id }, reason] of [
        [admin, 'PERMISSION_DENIED'],
        [others, 'CREDENTIAL_NOT_FOUND'],
        [{ credential_id: 'nonsense' }, 'CREDENTIAL_NOT_FOUND'],
      ]) {
        const fields = name === 'UpdateCredential' ? { name: 'mine' } : {}
        const answer = await first.call(owner, `admin/${name}`, { credential_id, ...fields })
        expect([name, answer.json.reason]).toEqual([name, reason])
      }
    expect((await first.call(owner, 'admin/RevokeCredential', other.member)).status).toBe(400)
    const { api_key } = other.member
    const byKey = await first.call(owner, 'admin/RevokeCredential', { api_key })
    expect(byKey.json.reason).toBe('CREDENTIAL_NOT_FOUND')
  })
})

describe('a change', () => {
  it('of a credential holds at once in every process', async () => {
    const pair = await usable()
    for (const app of both) expect(await operation(app, pair)).toBe('works')
    const { credential_id } = pair
    const narrow = { credential_id, scopes: ['q:read'], name: 'narrow' }
    expect(
      (await first.call(owner, 'admin/UpdateCredential', narrow)).json.credential,
    ).toMatchObject({ name: 'narrow', scopes: ['q:read'], expire_time: null })
    for (const app of both) expect(await operation(app, pair)).toBe('SCOPE_MISSING')
    const wide = { credential_id, scopes: ['*'] }
    expect((await second.call(owner, 'admin/UpdateCredential', wide)).status).toBe(200)
    for (const app of both) expect(await operation(app, pair)).toBe('works')
  })
})

/** Opens a WebSocket and says how it ends, or why it is refused. */
const connect = (app: TestGateway, path: string, headers: Record<string, string> = {}) => {
  const ws = new WebSocket(`${app.base_url.replace('http', 'ws')}${path}`, { headers })
  const ended = new Promise<{ code: number; reason: string }>((resolve) =>
    ws.on('close', (code, reason) => resolve({ code, reason: reason.toString() })),
  )
  const opened = new Promise<string>((resolve) => {
    ws.on('open', () => resolve('open'))
    ws.on('unexpected-response', (_request, response) => {
      resolve(`${response.statusCode}`)
      response.destroy()
    })
  })
  ws.on('error', () => {})
  return { ws, ended, opened }
}
const over = { code: 1008, reason: 'the API key is not valid any more' }

describe('the header Authorization: Bearer', () => {
  it('carries the key for addresses that have none', async () => {
    const { api_key } = tenant.member
    const authorization = `Bearer ${api_key}`
    for (const path of ['/c/mainnet/v1', '/c/mainnet/v1/']) {
      const send = async (headers: Record<string, string>) =>
        (await first.post(net, { path, headers })).status
      expect(await send({ authorization })).toBe(200)
      expect(await send({ authorization: `bearer ${api_key}` })).toBe(200)
      expect(await send({})).toBe(401)
      expect(await send({ authorization: `Basic ${api_key}` })).toBe(401)
      expect(await send({ authorization: 'Bearer plk_AAAAAAAAAAAAAAAAAAAAAAAA' })).toBe(401)
    }
    const { ws, opened } = connect(first, '/c/mainnet/v1/ws', { authorization })
    expect(await opened).toBe('open')
    ws.terminate()
    expect(await connect(first, '/c/mainnet/v1/ws').opened).toBe('401')
  })

  it('does not count where the address has a key', async () => {
    const authorization = `Bearer ${tenant.member.api_key}`
    const key = 'plk_AAAAAAAAAAAAAAAAAAAAAAAA'
    expect((await first.post(net, { key, headers: { authorization } })).status).toBe(401)
  })
})

describe('WebSockets', () => {
  it('end in every process when their key is revoked, by its id or by the key alone', async () => {
    for (const by of ['credential_id', 'api_key'] as const) {
      const pair = await usable()
      const open = both.map((app) => connect(app, `/c/mainnet/v1/ws/${pair.api_key}`))
      for (const { opened } of open) expect(await opened).toBe('open')
      const revoked = await first.call(owner, 'admin/RevokeCredential', { [by]: pair[by] })
      expect(revoked.status).toBe(200)
      for (const { ended } of open) expect(await ended).toEqual(over)
      for (const app of both) expect(await operation(app, pair)).toBe('UNAUTHENTICATED')
    }
  })

  it('end when their key expires, though nothing is sent', async () => {
    const pair = await usable({ expire_time: at(1) })
    const { opened, ended } = connect(first, `/c/mainnet/v1/ws/${pair.api_key}`)
    expect(await opened).toBe('open')
    expect(await ended).toEqual(over)
    expect(await connect(first, `/c/mainnet/v1/ws/${pair.api_key}`).opened).toBe('401')
  })

  it('are refused from other networks and without the scope', async () => {
    for (const fields of [{ allowed_client_networks: ['192.0.2.1'] }, { scopes: ['c:write'] }]) {
      const pair = await usable(fields)
      expect(await connect(first, `/c/mainnet/v1/ws/${pair.api_key}`).opened).toBe('403')
    }
  })
})

describe('a rotation', () => {
  const rotate = async (by: Pair, fields: object = {}) => {
    const answer = await first.call(by, 'admin/RotateCredential', fields)
    return { ...answer, credential: answer.json.credential as Pair }
  }

  it('lets both keys work for the overlap, and then the new one only', async () => {
    const old = await usable({ name: 'backend', scopes: ['admin:write', 'gateway'] })
    const socket = connect(second, `/c/mainnet/v1/ws/${old.api_key}`)
    expect(await socket.opened).toBe('open')
    const { credential } = await rotate(old, { overlap_seconds: 600 })
    expect(credential).toMatchObject({ name: 'backend', scopes: ['admin:write', 'gateway'] })
    noteSecret(credential.api_secret)
    for (const app of both)
      for (const pair of [old, credential]) {
        expect(await operation(app, pair)).toBe('works')
        expect(await gateway(app, pair)).toBe('works')
      }
    expect((await rotate(old)).json.reason).toBe('CREDENTIAL_ROTATED')
    clock.shift(601_000)
    for (const app of both) {
      expect(await operation(app, old)).toBe('CREDENTIAL_EXPIRED')
      expect(await gateway(app, old)).toBe('CREDENTIAL_EXPIRED')
      expect(await operation(app, credential)).toBe('works')
      expect(await gateway(app, credential)).toBe('works')
    }
    socket.ws.send(net)
    expect(await socket.ended).toEqual(over)
  })

  it('without an overlap ends the old key and its WebSockets at once', async () => {
    const old = await usable()
    const socket = connect(second, `/c/mainnet/v1/ws/${old.api_key}`)
    expect(await socket.opened).toBe('open')
    const { credential } = await rotate(old, { overlap_seconds: 0 })
    expect(await operation(second, old)).toBe('CREDENTIAL_EXPIRED')
    expect(await socket.ended).toEqual(over)
    expect(await operation(second, credential)).toBe('works')
  })

  it('whose answer was lost can be repeated, and its overlap grows by nothing', async () => {
    const old = await usable()
    const lost = (await rotate(old, { overlap_seconds: 600 })).credential
    expect((await rotate(old, { overlap_seconds: 600 })).json.reason).toBe('CREDENTIAL_ROTATED')
    clock.shift(61_000)
    const { credential } = await rotate(old, { overlap_seconds: 604_800 })
    expect(await operation(second, lost)).toBe('UNAUTHENTICATED')
    expect(await operation(second, credential)).toBe('works')
    clock.shift(540_000)
    expect(await operation(second, old)).toBe('CREDENTIAL_EXPIRED')
    expect(await operation(second, credential)).toBe('works')
  })

  it('made twice at once makes one successor', async () => {
    const old = await usable()
    const answers = await Promise.all([1, 2, 3].map(() => rotate(old)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409])
  })

  it('of another credential needs an owner', async () => {
    const { credential_id } = await usable()
    const member = await usable()
    expect((await rotate(member, { credential_id })).json.reason).toBe('PERMISSION_DENIED')
    const made = await first.call(owner, 'admin/RotateCredential', { credential_id })
    expect(made.status).toBe(200)
  })

  it('does not extend the given lifetime of a credential', async () => {
    const old = await usable({ expire_time: at(3600) })
    const { json } = await rotate(old, { expire_time: at(7200) })
    expect(json.reason).toBe('GRANT_EXCEEDED')
    const { credential } = await rotate(old)
    clock.shift(3_601_000)
    expect(await operation(first, credential)).toBe('CREDENTIAL_EXPIRED')
  })
})

it('shows when and from where a credential was last used', async () => {
  const pair = await usable()
  expect(await operation(first, pair)).toBe('works')
  await waitFor(
    'the use is noted',
    async () => {
      // An update holds the row, and the use is noted when it is free.
      const { json } = await first.call(owner, 'admin/UpdateCredential', {
        credential_id: pair.credential_id,
        name: 'used',
      })
      return json.credential.last_used_address === '127.0.0.1'
    },
    { timeoutMs: 30_000, everyMs: 500 },
  )
})
