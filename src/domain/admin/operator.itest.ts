import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { authHeaders, type Pair } from '../../../test/helpers/signer.ts'
import { systemClock } from '../../lib/clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { insertOrganization } from '../../storage/access/organizations.ts'
import { createSealer } from '../../storage/access/seal.ts'
import { createAuthenticator } from '../access/authenticate.ts'
import { checkMasterKey } from '../access/credential-keys.ts'
import { createNonceSpender } from '../access/nonce-spender.ts'
import type { Context, Installation } from '../context.ts'
import { createCredential, DeleteCredential } from './credentials.ts'
import { findByDomainOrId, revokeCredential, setEnabled } from './operator.ts'

const { db, pool } = await freshDatabase()
const installation: Installation = {
  db,
  clock: systemClock,
  ids: systemIds,
  sealer: createSealer(randomBytes(32)),
  log: silentLog,
}
const organization_id = systemIds.uuid()
await insertOrganization(db, {
  organization_id,
  name: 'n',
  domain: 'acme',
  create_time: new Date(),
})
const make = () =>
  createCredential(installation, { organization_id, role: 'ROLE_MEMBER', name: '' })

const context = (role: 'ROLE_ADMIN' | 'ROLE_MEMBER', of = organization_id): Context => ({
  ...installation,
  principal: { credential_id: systemIds.uuid(), organization_id: of, role },
  service: 'admin',
  chain: 'admin',
  operation: 'Test',
  signal: new AbortController().signal,
})

const authenticator = createAuthenticator(installation, {
  nonceWindowMs: 300_000,
  nonces: createNonceSpender({ db, pool }),
})
const works = async (pair: Pair) => {
  const path = '/v1/q/GetBlock'
  const headers = authHeaders(pair, { path })
  const request = {
    api_key: headers['x-api-key'],
    nonce: headers['x-api-nonce'],
    signature: headers['x-api-signature'],
    method: 'POST',
    path,
    body: new Uint8Array(),
    client: '192.0.2.1',
  }
  return await authenticator.authenticate(request).then(
    () => true,
    () => false,
  )
}

describe('an operator', () => {
  it('finds an organization by its domain or its id', async () => {
    const admin = context('ROLE_ADMIN')
    expect((await findByDomainOrId(admin, 'acme')).organization_id).toBe(organization_id)
    expect((await findByDomainOrId(admin, organization_id)).domain).toBe('acme')
    for (const text of ['unknown', '', systemIds.uuid(), "'"])
      await expect(findByDomainOrId(admin, text)).rejects.toMatchObject({
        reason: 'ORGANIZATION_NOT_FOUND',
      })
  })

  it('disables an organization at once and enables it again', async () => {
    const pair = await make()
    expect(await works(pair)).toBe(true)
    expect((await setEnabled(installation, organization_id, false)).disable_time).toBeInstanceOf(
      Date,
    )
    expect(await works(pair)).toBe(false)
    expect((await setEnabled(installation, organization_id, true)).disable_time).toBeNull()
    expect(await works(pair)).toBe(true)
  })

  it('cannot disable an organization that does not exist', async () => {
    await expect(setEnabled(installation, systemIds.uuid(), false)).rejects.toMatchObject({
      reason: 'ORGANIZATION_NOT_FOUND',
    })
  })

  it('revokes a credential by its key alone, once', async () => {
    const pair = await make()
    expect(await works(pair)).toBe(true)
    await revokeCredential(installation, pair.api_key)
    expect(await works(pair)).toBe(false)
    await expect(revokeCredential(installation, pair.api_key)).rejects.toMatchObject({
      reason: 'CREDENTIAL_NOT_FOUND',
    })
  })
})

describe('DeleteCredential', () => {
  it('succeeds for exactly one of many that delete together', async () => {
    const pair = await make()
    const calls = Array.from({ length: 10 }, () => DeleteCredential(context('ROLE_ADMIN'), pair))
    const results = await Promise.allSettled(calls)
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  it('fails alike for an unknown key, a wrong secret and another organization', async () => {
    const pair = await make()
    const attempts = [
      DeleteCredential(context('ROLE_MEMBER'), { ...pair, api_key: 'plk_unknown' }),
      DeleteCredential(context('ROLE_MEMBER'), { ...pair, api_secret: 'guess' }),
      DeleteCredential(context('ROLE_MEMBER', systemIds.uuid()), pair),
      DeleteCredential(context('ROLE_ADMIN'), { ...pair, api_secret: '' }),
    ]
    const results = await Promise.allSettled(attempts)
    const messages = results.map((result) => result.status === 'rejected' && result.reason.message)
    expect(new Set(messages)).toEqual(new Set(['Credential not found.']))
    expect(await works(pair)).toBe(true)
  })
})

describe('the master key', () => {
  it('that sealed the credentials is recognized and another one is not', async () => {
    await make()
    await checkMasterKey(installation)
    const wrong = { db, sealer: createSealer(randomBytes(32)) }
    await expect(checkMasterKey(wrong)).rejects.toThrow('master key')
  })
})
