import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { deleteCredential } from '../../storage/access/credentials.ts'
import { insertOrganization, setOrganizationDisabled } from '../../storage/access/organizations.ts'
import { createSealer } from '../../storage/access/seal.ts'
import { createCredential } from '../admin/credentials.ts'
import { hashKey } from './credential-keys.ts'
import { createGatewayKeys } from './gateway-keys.ts'

const { db } = await freshDatabase()
let time = Date.now()
const clock = { now: () => time, sleep: async () => {} }
const installation = {
  db,
  clock,
  ids: systemIds,
  sealer: createSealer(randomBytes(32)),
  log: silentLog,
}
const organization_id = systemIds.uuid()
await insertOrganization(db, {
  organization_id,
  name: 'Acme',
  domain: 'acme',
  create_time: new Date(),
})
const make = async () => {
  const options = { organization_id, role: 'ROLE_MEMBER' as const, name: '' }
  const { api_key } = await createCredential(installation, options)
  const { credential_id } = await db
    .selectFrom('credential')
    .select('credential_id')
    .where('api_key_hash', '=', hashKey(api_key))
    .executeTakeFirstOrThrow()
  return { api_key, credential_id }
}
const open = () => {
  const keys = createGatewayKeys({ db, clock })
  keys.connected()
  return keys
}

it('answers at once for a key that was used before', async () => {
  const { api_key, credential_id } = await make()
  const keys = open()
  const first = keys.principalOf(api_key)
  expect(first).toBeInstanceOf(Promise)
  const principal = { credential_id, organization_id, role: 'ROLE_MEMBER' }
  expect(await first).toEqual(principal)
  expect(keys.principalOf(api_key)).toEqual(principal)
  expect(keys.principalOf(api_key, '192.0.2.1')).toEqual(principal)
  expect(keys.takeUsed()).toEqual([{ credential_id, client: '192.0.2.1' }])
  expect(keys.takeUsed()).toEqual([])
})

it('forgets a credential and an organization when they change', async () => {
  const { api_key, credential_id } = await make()
  const keys = open()
  await keys.principalOf(api_key)
  await deleteCredential(db, { credential_id, organization_id })
  expect(keys.principalOf(api_key)).toBeDefined()
  keys.forget({ kind: 'credential', organization_id, credential_id })
  expect(await keys.principalOf(api_key)).toBeUndefined()

  const other = await make()
  await keys.principalOf(other.api_key)
  const change = { organization_id, update_time: new Date() }
  await setOrganizationDisabled(db, { ...change, disable_time: new Date() })
  keys.forget({ kind: 'organization', organization_id })
  expect(await keys.principalOf(other.api_key)).toBeUndefined()
  await setOrganizationDisabled(db, { ...change, disable_time: null })
  keys.forget({ kind: 'organization', organization_id })
  expect(await keys.principalOf(other.api_key)).toBeDefined()
})

it('does not answer with a look-up that began before a change was announced', async () => {
  const { api_key, credential_id } = await make()
  const held = Promise.withResolvers<void>()
  let results = 0
  const slow = db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      if (++results === 1) await held.promise
      return result
    },
  })
  const keys = createGatewayKeys({ db: slow, clock })
  keys.connected()
  const before = keys.principalOf(api_key)
  await expect.poll(() => results).toBe(1)
  await deleteCredential(db, { credential_id, organization_id })
  keys.forget({ kind: 'credential', organization_id, credential_id })
  expect(await keys.principalOf(api_key)).toBeUndefined()
  held.resolve()
  expect(await before).toMatchObject({ credential_id })
  expect(await keys.principalOf(api_key)).toBeUndefined()
})

it('checks every second without change notifications, and every half minute with them', async () => {
  const { api_key, credential_id } = await make()
  const keys = open()
  await keys.principalOf(api_key)
  time += 5_000
  expect(keys.principalOf(api_key)).not.toBeInstanceOf(Promise)
  keys.disconnected()
  expect(keys.principalOf(api_key)).toBeInstanceOf(Promise)
  await keys.principalOf(api_key)
  expect(keys.principalOf(api_key)).not.toBeInstanceOf(Promise)
  await deleteCredential(db, { credential_id, organization_id })
  time += 1_000
  expect(await keys.principalOf(api_key)).toBeUndefined()
  const another = await make()
  keys.connected()
  await keys.principalOf(another.api_key)
  time += 30_000
  expect(keys.principalOf(another.api_key)).toBeInstanceOf(Promise)
})

it('remembers for a moment that a key is unknown, and no more of them than it has room for', async () => {
  const keys = createGatewayKeys({ db, clock }, { maxKeys: 10 })
  expect(await keys.principalOf('plk_nobody')).toBeUndefined()
  expect(keys.principalOf('plk_nobody')).not.toBeInstanceOf(Promise)
  time += 2_000
  expect(keys.principalOf('plk_nobody')).toBeInstanceOf(Promise)
  for (let index = 0; index < 30; index++) await keys.principalOf(`plk_nobody${index}`)
  expect(keys.principalOf('plk_nobody0')).toBeInstanceOf(Promise)
  expect(keys.principalOf('plk_nobody29')).toBeUndefined()
  expect(keys.principalOf('not a key')).toBeUndefined()
})

const breakable = () => {
  let isAway = false
  let asked = 0
  const broken = new Proxy(db, {
    get: (target, name) => {
      if (name === 'selectFrom') asked++
      if (isAway) throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' })
      const value = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return {
    db: broken,
    asked: () => asked,
    setAway: (away: boolean) => {
      isAway = away
    },
  }
}

it('keeps known keys for ten minutes while the database is unreachable, and no longer', async () => {
  const { api_key } = await make()
  const broken = breakable()
  const keys = createGatewayKeys({ db: broken.db, clock })
  keys.connected()
  const principal = await keys.principalOf(api_key)
  broken.setAway(true)
  keys.disconnected()
  // Older than any age that is trusted while the database can be asked.
  for (const later of [2_000, 40_000, 300_000, 250_000]) {
    time += later
    expect(await keys.principalOf(api_key)).toEqual(principal)
  }
  await expect(keys.principalOf('plk_new')).rejects.toThrow('away')
  time += 10_000
  await expect(keys.principalOf(api_key)).rejects.toThrow('away')
})

it('answers at once and asks once per second while the database is unreachable, then notices its return', async () => {
  const { api_key, credential_id } = await make()
  const broken = breakable()
  const keys = createGatewayKeys({ db: broken.db, clock })
  keys.connected()
  const principal = await keys.principalOf(api_key)
  broken.setAway(true)
  time += 31_000
  expect(await keys.principalOf(api_key)).toEqual(principal)
  const before = broken.asked()
  for (let call = 0; call < 100; call++) expect(keys.principalOf(api_key)).toEqual(principal)
  expect(broken.asked()).toBe(before)
  time += 1_000
  for (let call = 0; call < 100; call++) expect(keys.principalOf(api_key)).toEqual(principal)
  expect(broken.asked()).toBe(before + 1)
  await deleteCredential(db, { credential_id, organization_id })
  broken.setAway(false)
  time += 1_000
  keys.principalOf(api_key)
  await expect.poll(async () => await keys.principalOf(api_key)).toBeUndefined()
})

it('keeps its cache when change notifications resume, but revalidates it before use', async () => {
  const { api_key, credential_id } = await make()
  const broken = breakable()
  const keys = createGatewayKeys({ db: broken.db, clock })
  keys.connected()
  const principal = await keys.principalOf(api_key)
  broken.setAway(true)
  keys.connected()
  expect(await keys.principalOf(api_key)).toEqual(principal)
  broken.setAway(false)
  await deleteCredential(db, { credential_id, organization_id })
  const fresh = open()
  expect(await fresh.principalOf(api_key)).toBeUndefined()
})

it('refuses a key that was made up without asking the database', async () => {
  const { api_key } = await make()
  const broken = breakable()
  const forms = { isForged: (key: string) => key !== api_key }
  const keys = createGatewayKeys({ db: broken.db, clock }, { forms })
  for (let guess = 0; guess < 100; guess++)
    expect(keys.principalOf(`plk_${systemIds.bytes(30).toString('base64url')}`)).toBeUndefined()
  expect(broken.asked()).toBe(0)
  expect(await keys.principalOf(api_key)).toBeDefined()
  expect(broken.asked()).toBe(1)
})
