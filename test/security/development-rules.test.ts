import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { type App, startApp } from '../../src/app/app.ts'
import { loadConfig } from '../../src/app/config/load.ts'
import { captureLog, noteSecret } from '../helpers/log-capture.ts'

// A configuration by variables alone, with the PostgreSQL that Portolan brings along.
const dataDir = await mkdtemp(join(tmpdir(), 'portolan-development-'))
const start = async (more: Record<string, string> = {}) => {
  const env = {
    PORTOLAN_DATA_DIR: dataDir,
    PORTOLAN_PORT: '0',
    PORTOLAN_CHAINS__C__NETWORKS__MAINNET__UPSTREAMS__0__URL: 'http://127.0.0.1:9',
    ...more,
  }
  const log = await captureLog()
  const config = loadConfig({ env, cwd: dataDir })
  const app = await startApp({ config, env, cwd: dataDir, log: log.log, version: 'test' })
  return { app, log }
}
const running: App[] = []
afterAll(async () => {
  for (const app of running) await app.stop()
  await rm(dataDir, { recursive: true, force: true })
})

it('a service configured by variables has no demo administrator, no development routes and no open pages', async () => {
  const { app, log } = await start()
  running.push(app)
  expect(app.demo).toBeUndefined()
  const file = JSON.parse(await readFile(app.connectionFile, 'utf8'))
  expect(file.admin).toBeUndefined()
  expect(file.member).toBeUndefined()
  const faucet = await fetch(`${app.base_url}/dev/v1/faucet`, { method: 'POST' })
  expect(faucet.status).toBe(404)
  const origin = 'http://localhost:3000'
  const answer = await fetch(`${app.base_url}/v1/admin/ListOrganizations`, {
    method: 'POST',
    headers: { origin },
  })
  expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  expect(log.text()).not.toContain('demo administrator')
  await app.stop()
})

it('the switch turns the development rules on with a warning, and what it made is warned of later', async () => {
  const { app, log } = await start({ PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true' })
  running.push(app)
  for (const pair of [app.demo!.admin, app.demo!.member]) {
    noteSecret(pair.api_key)
    noteSecret(pair.api_secret)
  }
  expect(log.text()).toContain('security.development_rules is on')
  await app.stop()

  const later = await start()
  running.push(later.app)
  expect(later.app.demo).toBeUndefined()
  expect(later.log.text()).toContain('The demo administrator of an earlier start still has access')
  await later.app.stop()
})
