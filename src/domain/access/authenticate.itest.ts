import { randomBytes } from 'node:crypto'
import type { Kysely, KyselyPlugin } from 'kysely'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { authHeaders, nextNonce, type Pair } from '../../../test/helpers/signer.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import { systemClock } from '../../lib/clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { deleteCredential, updateCredential } from '../../storage/access/credentials.ts'
import { insertOrganization, setOrganizationDisabled } from '../../storage/access/organizations.ts'
import { createSealer } from '../../storage/access/seal.ts'
import type { Tables } from '../../storage/pg/tables.ts'
import { createCredential } from '../admin/credentials.ts'
import type { Installation } from '../context.ts'
import { type Authenticator, createAuthenticator, type SignedRequest } from './authenticate.ts'
import { loadKeyMac } from './key-mac.ts'
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

  it('costs one look-up in two seconds for a key that fails again and again, known or not', async () => {
    const pair = await make()
    const deleted = await make()
    const warm = open()
    await warm.authenticate(request(pair))
    const { credential_id } = await warm.authenticate(request(deleted))
    await deleteCredential(db, { credential_id, organization_id })
    await refusal(warm, request(deleted))
    for (const api_key of [pair.api_key, deleted.api_key]) {
      const wrong = { api_key, api_secret: 'guess' }
      const costs: number[] = []
      for (let attempt = 0; attempt < 5; attempt++)
        costs.push((await refusal(warm, request(wrong))).statements.length)
      expect(costs).toEqual([1, 0, 0, 0, 0])
    }
    expect((await warm.authenticate(request(pair))).organization_id).toBe(organization_id)
  })

  it('costs no look-up for a key that was made up, and gives the same answer', async () => {
    const pair = await make()
    const mac = await loadKeyMac(installation)
    const authenticator = createAuthenticator(installation, {
      nonceWindowMs: 300_000,
      nonces: createNonceSpender({ db: installation.db, pool }),
      forms: mac,
    })
    const guess = `plk_${systemIds.bytes(30).toString('base64url')}`
    const made = await refusal(authenticator, request({ api_key: guess, api_secret: 'x' }))
    const wrong = await refusal(authenticator, request({ ...pair, api_secret: 'x' }))
    expect(made.statements).toEqual([])
    expect({ ...made, statements: [] }).toEqual({ ...wrong, statements: [] })
    await authenticator.authenticate(request(pair))
  })

  it('checks the current rights of a cached credential', async () => {
    const pair = await make()
    const authenticator = open()
    const first = await authenticator.authenticate(request(pair))
    expect(first.restrictions).toBeUndefined()
    await updateCredential(db, first, { scopes: ['q:read'] })
    const second = await authenticator.authenticate(request(pair))
    expect([...(second.restrictions?.scopes ?? [])]).toEqual(['q:read'])
    await updateCredential(db, first, { expire_time: new Date(Date.now() - 1) })
    expect((await refusal(authenticator, request(pair))).reason).toBe('CREDENTIAL_EXPIRED')
    const wrong = { ...pair, api_secret: 'guess' }
    expect((await refusal(authenticator, request(wrong))).reason).toBe('UNAUTHENTICATED')
    await updateCredential(db, first, { expire_time: new Date(Date.now() + 60_000) })
    expect((await authenticator.authenticate(request(pair))).role).toBe('ROLE_MEMBER')
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

  it('starts no work for a request whose nonce is refused at once', async () => {
    const pair = await make()
    const full = new Error('too many wait already')
    const authenticator = createAuthenticator(installation, {
      nonceWindowMs: 300_000,
      nonces: { spend: () => Promise.reject(full) },
    })
    let notified = 0
    const asked = authenticator.authenticate(request(pair), () => notified++)
    await expect(asked).rejects.toBe(full)
    await new Promise(setImmediate)
    expect(notified).toBe(0)
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

  it('reveals neither clock nor nonce errors to a deleted credential', async () => {
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

  it('reports each used credential once to the janitor', async () => {
    const pair = await make()
    const authenticator = open()
    await refusal(authenticator, request({ ...pair, api_secret: 'guess' }))
    expect(authenticator.takeUsed()).toEqual([])
    const { credential_id } = await authenticator.authenticate(request(pair))
    await authenticator.authenticate(request(pair))
    expect(authenticator.takeUsed()).toEqual([{ credential_id, client: '192.0.2.1' }])
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
