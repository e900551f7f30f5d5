import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { afterAll, describe, expect, it } from 'vitest'
import { type App, startApp } from '../../src/app/app.ts'
import { loadConfig } from '../../src/app/config/load.ts'
import { layoutOf } from '../../src/storage/embedded/layout.ts'
import { findPostmaster } from '../../src/storage/embedded/postmaster.ts'
import { sendOn } from '../helpers/app.ts'
import { captureLog, leaksIn, noteSecret } from '../helpers/log-capture.ts'
import { authHeaders, type Pair } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'

const dataDir = await mkdtemp(join(tmpdir(), 'portolan-embedded-'))
const log = await captureLog()
const running: App[] = []
const start = async () => {
  const overrides = {
    data_dir: dataDir,
    server: { port: 0 },
    security: { development_rules: true },
  }
  const config = loadConfig({ env: {}, cwd: dataDir, overrides })
  const app = await startApp({ config, env: {}, cwd: dataDir, log: log.log, version: 'test' })
  running.push(app)
  for (const { api_key, api_secret } of [app.demo!.admin, app.demo!.member]) {
    noteSecret(api_key)
    noteSecret(api_secret)
  }
  return app
}
afterAll(async () => {
  for (const app of running) await app.stop()
  await rm(dataDir, { recursive: true, force: true })
  expect(leaksIn(log.text())).toEqual([])
})

const call = async (app: App, pair: Pair, operation: string, fields: object) => {
  const pool = new Pool(app.base_url)
  const path = `/v1/admin/${operation}`
  const body = JSON.stringify(fields)
  const headers = { 'content-type': 'application/json', ...authHeaders(pair, { path, body }) }
  return await sendOn(pool, path, { body, headers }).finally(() => pool.destroy())
}

// Not the first line of its file: that may be a process that has ended, or this one (`disownPidFile`).
const postmaster = () => findPostmaster(layoutOf(dataDir).data)

describe('the embedded service', () => {
  it('writes a connection file for its owner alone, with credentials that work', async () => {
    const app = await start()
    expect(app.database).toBe('embedded')
    expect((await stat(app.connectionFile)).mode & 0o777).toBe(0o600)
    const file = JSON.parse(await readFile(app.connectionFile, 'utf8'))
    expect(file).toMatchObject({ base_url: app.base_url, ...app.demo })
    expect(file.ws_url).toBe(app.base_url.replace('http', 'ws'))
    expect((await call(app, file.admin, 'ListOrganizations', {})).status).toBe(200)
    const { organization_id } = file
    expect((await call(app, file.member, 'ListRateLimits', { organization_id })).status).toBe(200)
    expect((await call(app, file.member, 'ListOrganizations', {})).status).toBe(403)
  })

  it('recovers by itself when its PostgreSQL is killed, and keeps what it acknowledged', async () => {
    const [app] = running as [App]
    const { admin } = app.demo!
    for (let round = 0; round < 2; round++) {
      const domain = `before-${round}`
      const made = await call(app, admin, 'CreateOrganization', { name: 'n', domain })
      expect(made.status).toBe(200)
      const pid = (await postmaster())!
      process.kill(pid, 'SIGKILL')
      const statuses = new Set<number>()
      await waitFor(
        'it answers again',
        async () => {
          const { status } = await call(app, admin, 'GetOrganizationByDomain', { domain })
          statuses.add(status)
          const now = await postmaster()
          return status === 200 && now !== undefined && now !== pid
        },
        { timeoutMs: 30_000 },
      )
      expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([])
    }
  })

  it('keeps its credentials and data over a restart and removes the connection file meanwhile', async () => {
    const [first] = running as [App]
    await first.stop()
    await expect(stat(first.connectionFile)).rejects.toThrow('ENOENT')
    const second = await start()
    expect(second.demo).toEqual(first.demo)
    const { admin } = second.demo!
    const found = await call(second, admin, 'GetOrganizationByDomain', { domain: 'before-1' })
    expect(found.status).toBe(200)
  })

  it('makes a demo credential anew that was deleted', async () => {
    const last = running.at(-1)!
    const { admin, member } = last.demo!
    expect((await call(last, admin, 'DeleteCredential', member)).status).toBe(200)
    await last.stop()
    const next = await start()
    expect(next.demo!.admin).toEqual(admin)
    expect(next.demo!.member.api_key).not.toBe(member.api_key)
    const { organization_id } = next.demo!
    const used = await call(next, next.demo!.member, 'ListRateLimits', { organization_id })
    expect(used.status).toBe(200)
  })
})
