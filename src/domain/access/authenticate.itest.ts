import { randomBytes } from 'node:crypto'
import type { Kysely, KyselyPlugin } from 'kysely'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { authHeaders, nextNonce, type Pair } from '../../../test/helpers/signer.ts'
import { OperationError } from '../../contract/errors.ts'
import { systemClock } from '../../lib/clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { deleteCredential } from '../../storage/credentials.ts'
import { insertOrganization, setOrganizationDisabled } from '../../storage/organizations.ts'
import { createSealer } from '../../storage/seal.ts'
import type { Tables } from '../../storage/tables.ts'
import { createCredential } from '../admin/credentials.ts'
import type { Installation } from '../context.ts'
import { type Authenticator, createAuthenticator, type SignedRequest } from './authenticate.ts'
import { createNonceSpender } from './nonce-spender.ts'

const { db, pool } = await freshDatabase()
const statements: string[] = []
const counting: KyselyPlugin = {
  transformQuery: ({ node }) => {
    statements.push(node.kind)
    return node
  },
  transformResult: async ({ result }) => result,
}
const installation: Installation = {
  db: db.withPlugin(counting) as Kysely<Tables>,
  clock: systemClock,
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
const make = () =>
  createCredential({ ...installation, db }, { organization_id, role: 'ROLE_MEMBER', name: '' })

const path = '/v1/q/GetBlock'
const request = (pair: Pair, nonce = nextNonce()) => {
  const headers = authHeaders(pair, { path, nonce })
  return {
    api_key: headers['x-api-key'],
    nonce: headers['x-api-nonce'],
    signature: headers['x-api-signature'],
    method: 'POST',
    path,
    body: new Uint8Array(),
    client: '192.0.2.1',
  }
}

const open = () =>
  createAuthenticator(installation, {
    nonceWindowMs: 300_000,
    nonces: createNonceSpender({ db: installation.db, pool }),
  })

const refusal = async (authenticator: Authenticator, signed: SignedRequest) => {
  statements.length = 0
  const error = await authenticator.authenticate(signed).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return {
    reason: (error as OperationError | undefined)?.reason,
    message: (error as OperationError | undefined)?.message,
    statements: [...statements],
  }
}

describe('the check of a signature', () => {
  it('costs the same look-up for an unknown key and for a wrong signature', async () => {
    const pair = await make()
    const wrong = { ...pair, api_secret: 'guess' }
    const unknown = { api_key: 'plk_unknown', api_secret: 'guess' }
    const cold = open()
    const warm = open()
    await warm.authenticate(request(pair))
    const answers = [
      await refusal(cold, request(unknown)),
      await refusal(cold, request(wrong)),
      await refusal(warm, request(unknown)),
      await refusal(warm, request(wrong)),
    ]
    expect(answers[0]).toMatchObject({ reason: 'UNAUTHENTICATED', statements: ['SelectQueryNode'] })
    for (const answer of answers) expect(answer).toEqual(answers[0])
  })

  it('does not write anything for a request with a wrong signature', async () => {
    const pair = await make()
    const { statements: done } = await refusal(open(), request({ ...pair, api_secret: 'guess' }))
    expect(done).toEqual(['SelectQueryNode'])
  })

  it('looks a credential up once and spends each nonce in one statement', async () => {
    const pair = await make()
    const authenticator = open()
    await authenticator.authenticate(request(pair))
    statements.length = 0
    let taken = 0
    const count = () => taken++
    pool.on('acquire', count)
    await authenticator.authenticate(request(pair))
    pool.off('acquire', count)
    expect([statements, taken]).toEqual([[], 1])
  })

  it('begins nothing for a request whose nonce is turned away at once', async () => {
    const pair = await make()
    const full = new Error('too many wait already')
    const authenticator = createAuthenticator(installation, {
      nonceWindowMs: 300_000,
      nonces: { spend: () => Promise.reject(full) },
    })
    let told = 0
    const asked = authenticator.authenticate(request(pair), () => told++)
    await expect(asked).rejects.toBe(full)
    await new Promise(setImmediate)
    expect(told).toBe(0)
  })

  it('refuses a credential at once after it was deleted elsewhere', async () => {
    const pair = await make()
    const authenticator = open()
    const { credential_id } = await authenticator.authenticate(request(pair))
    await deleteCredential(db, { credential_id, organization_id })
    expect(await refusal(authenticator, request(pair))).toMatchObject({
      reason: 'UNAUTHENTICATED',
    })
  })

  it('tells a deleted credential neither of its clock nor of its nonces', async () => {
    const pair = await make()
    const nonces = [nextNonce(), String(Date.now() - 3_600_000), 'none']
    const known = nonces.map(() => open())
    const [first] = nonces
    const { credential_id } = await known[0]!.authenticate(request(pair, first))
    for (const authenticator of known.slice(1)) await authenticator.authenticate(request(pair))
    await deleteCredential(db, { credential_id, organization_id })
    for (const [at, authenticator] of known.entries())
      expect(await refusal(authenticator, request(pair, nonces[at]))).toMatchObject({
        reason: 'UNAUTHENTICATED',
      })
  })

  it('refuses the credentials of a disabled organization and takes them again when it is enabled', async () => {
    const pair = await make()
    const authenticator = open()
    await authenticator.authenticate(request(pair))
    const disable = (disable_time: Date | null) =>
      setOrganizationDisabled(db, { organization_id, disable_time, update_time: new Date() })
    await disable(new Date())
    expect(await refusal(authenticator, request(pair))).toMatchObject({
      reason: 'UNAUTHENTICATED',
    })
    await disable(null)
    expect((await authenticator.authenticate(request(pair))).organization_id).toBe(organization_id)
  })

  it('tells the janitor once which credentials were used', async () => {
    const pair = await make()
    const authenticator = open()
    await refusal(authenticator, request({ ...pair, api_secret: 'guess' }))
    expect(authenticator.takeUsed()).toEqual([])
    const { credential_id } = await authenticator.authenticate(request(pair))
    await authenticator.authenticate(request(pair))
    expect(authenticator.takeUsed()).toEqual([credential_id])
    expect(authenticator.takeUsed()).toEqual([])
  })

  it('gives the time of the server with a nonce that is too far from it', async () => {
    const pair = await make()
    const error = await open()
      .authenticate(request(pair, '1000000000000'))
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(OperationError)
    const { reason, extra } = error as OperationError
    expect(reason).toBe('CLOCK_SKEW')
    expect(Math.abs(Number(extra.server_time) - Date.now())).toBeLessThan(5_000)
  })
})
