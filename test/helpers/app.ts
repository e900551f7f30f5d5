import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { afterAll, expect, onTestFinished, TestRunner } from 'vitest'
import { type App, startApp } from '../../src/app/app.ts'
import { loadConfig } from '../../src/app/config/load.ts'
import type { Overrides } from '../../src/app/config/schema.ts'
import type { ReloadOutcome } from '../../src/app/reload/reload.ts'
import type { Principal } from '../../src/domain/access/principal.ts'
import { createCredential } from '../../src/domain/admin/credentials.ts'
import type { Installation } from '../../src/domain/context.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { systemIds } from '../../src/lib/ids.ts'
import { insertOrganization } from '../../src/storage/access/organizations.ts'
import { upsertRateLimit } from '../../src/storage/access/rate-limits.ts'
import { createSealer } from '../../src/storage/access/seal.ts'
import { type FreshDatabase, freshDatabase } from './database.ts'
import { type CapturedLog, captureLog, leaksIn, noteSecret } from './log-capture.ts'
import { placesOf, type ScriptedChains, trackingBegins } from './scripted-chains.ts'
import { authHeaders, nextNonce, type Pair } from './signer.ts'

/** An answer as it came. */
export type Answer = {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look at members of any answer
  json: any
}

/** How to send a request. */
export type Sending = {
  method?: string
  headers?: Record<string, string | string[]>
  body?: string | Uint8Array
}

/** An organization of a test, with a credential of each role. */
export type Tenant = { organization_id: string; domain: string; member: Pair; admin: Pair }

/** The real service in this process, on a database of its own. */
export type TestApp = {
  app: App
  base_url: string
  database: FreshDatabase
  master_key: string
  installation: Installation
  log: CapturedLog
  /** Sends a request as it is. */
  send(path: string, sending?: Sending): Promise<Answer>
  /** Reads a route of the operator. */
  admin(path: string): Promise<Answer>
  /** Calls an operation with a signed JSON body. */
  call(pair: Pair, operation: string, body?: unknown, headers?: Sending['headers']): Promise<Answer>
  createTenant(limits?: number): Promise<Tenant>
  createPair(organization_id: string, role: Principal['role']): Promise<Pair>
  /** Changes the configuration and lets the service read it again. */
  reload(config: Overrides): Promise<ReloadOutcome>
  stop(): Promise<void>
}

/** What may be chosen. */
export type TestAppOptions = {
  /** Another service, to run a second one on its database. */
  beside?: TestApp
  /** A database of the test's own, instead of a fresh one on the common server. */
  database?: FreshDatabase
  config?: Overrides
  clock?: Clock
  /** Chains for the wallet services, instead of those of the configuration. */
  chains?: ScriptedChains
}

/** A clock that runs with the machine's, at a distance that a test may change. */
export const shiftedClock = (): Clock & { shift(ms: number): void } => {
  let offset = 0
  return {
    ...systemClock,
    now: () => Date.now() + offset,
    shift: (ms) => {
      offset += ms
    },
  }
}

/** The address of a database on a unix socket. */
export const databaseUrl = ({ host, user, database }: FreshDatabase['connection']): string =>
  `postgres:///${database}?host=${encodeURIComponent(host)}&user=${user}`

/**
 * Starts the service; called at the top of a file it stops after it, in a test after the test. Then
 * its whole log is searched for every credential and signature of the file.
 */
export const startTestApp = async (options: TestAppOptions = {}): Promise<TestApp> => {
  const { beside, clock = systemClock } = options
  const database = options.database ?? beside?.database ?? (await freshDatabase())
  const master_key = beside?.master_key ?? randomBytes(32).toString('hex')
  noteSecret(master_key)
  const dataDir = await mkdtemp(join(tmpdir(), 'portolan-app-'))
  const log = await captureLog()
  let given = options.config ?? {}
  const read = () => {
    const { server, security, ...config } = given
    return loadConfig({
      env: {},
      cwd: dataDir,
      overrides: {
        data_dir: dataDir,
        database: { url: databaseUrl(database.connection) },
        ...config,
        // Suites try many wrong credentials from one address.
        security: { master_key, auth_failures_burst: 1_000_000, ...security },
        server: { port: 0, ...server },
      },
    })
  }
  const app = await startApp({
    config: read(),
    reread: read,
    env: {},
    cwd: dataDir,
    log: log.log,
    attachLog: log.log.attach,
    version: '0.0.0-test',
    clock,
    ...(options.chains && { places: placesOf(options.chains) }),
  })
  if (options.chains) await trackingBegins(database.db, options.chains)
  // The base URL may have a path.
  const pool = new Pool(new URL(app.base_url).origin, { connections: 32, pipelining: 1 })
  const operator = new Pool(app.admin_url!, { connections: 4, pipelining: 1 })
  const sealer = createSealer(Buffer.from(master_key, 'hex'))
  const installation = { db: database.db, clock, ids: systemIds, sealer, log: log.log }

  let stopped: Promise<void> | undefined
  const stop = async () => {
    await pool.destroy()
    await operator.destroy()
    await app.stop()
    await rm(dataDir, { recursive: true, force: true })
    expect(leaksIn(log.text()), 'credentials or signatures in the log').toEqual([])
  }
  const test: TestApp = {
    app,
    base_url: app.base_url,
    database,
    master_key,
    installation,
    log,
    send: (path, sending) => sendOn(pool, path, sending),
    admin: (path) => sendOn(operator, path, { method: 'GET' }),
    call: (pair, operation, body, headers) => {
      const path = `/v1/${operation}`
      const text = body === undefined ? '' : JSON.stringify(body)
      return sendOn(pool, path, {
        body: text,
        headers: {
          'content-type': 'application/json',
          ...authHeaders(pair, { path, body: text, nonce: nextNonce(clock.now()) }),
          ...headers,
        },
      })
    },
    createTenant: (limit) => createTenant(installation, limit),
    createPair: (organization_id, role) => createPair(installation, organization_id, role),
    reload: (config) => {
      given = config
      return app.reload()
    },
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
  if (TestRunner.getCurrentTest()) onTestFinished(test.stop)
  else afterAll(test.stop)
  return test
}

/** Sends a request and reads its answer whole. */
export const sendOn = async (
  pool: Pool,
  path: string,
  { method = 'POST', headers = {}, body }: Sending = {},
): Promise<Answer> => {
  const answer = await pool.request({
    path,
    method: method as 'POST',
    headers,
    body: body === undefined || body.length === 0 ? null : body,
  })
  const text = await answer.body.text()
  const json = parse(text)
  noteCredential(json?.credential)
  return { status: answer.statusCode, headers: answer.headers, text, json }
}

const parse = (text: string) => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

// A credential made by an operation must not be logged either.
const noteCredential = (credential?: Pair) => {
  if (credential?.api_key) noteSecret(credential.api_key)
  if (credential?.api_secret) noteSecret(credential.api_secret)
}

const createPair = async (
  installation: Installation,
  organization_id: string,
  role: Principal['role'],
): Promise<Pair> => {
  const made = await createCredential(installation, { organization_id, role, name: 'test' })
  noteCredential(made)
  return { api_key: made.api_key, api_secret: made.api_secret }
}

const createTenant = async (installation: Installation, limit = -1): Promise<Tenant> => {
  const { db, ids, clock } = installation
  const organization_id = ids.uuid()
  const domain = `tenant-${ids.bytes(8).toString('hex')}`
  const now = new Date(clock.now())
  await insertOrganization(db, { organization_id, name: 'Tenant', domain, create_time: now })
  await upsertRateLimit(db, {
    organization_id,
    chain: '*',
    per_second_limit: limit,
    per_hour_limit: limit,
    per_day_limit: limit,
    per_month_limit: limit,
    update_time: now,
  })
  return {
    organization_id,
    domain,
    member: await createPair(installation, organization_id, 'ROLE_MEMBER'),
    admin: await createPair(installation, organization_id, 'ROLE_ADMIN'),
  }
}
