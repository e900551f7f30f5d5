import { execFile } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { createClient, verifyWebhook } from '../../client/src/index.ts'
import { countKeyUses } from '../../src/domain/access/reseal.ts'
import { countServicesWithout } from '../../src/storage/access/key-holders.ts'
import { createSealer } from '../../src/storage/access/seal.ts'
import { startStubNode } from '../gateway/stub-node.ts'
import { startTestApp } from '../helpers/app.ts'
import { bundledService } from '../helpers/bundle.ts'
import { freshDatabase } from '../helpers/database.ts'
import { noteSecret } from '../helpers/log-capture.ts'
import { startReceiver } from '../webhooks/receiver.ts'
import { end, startService } from './replay.ts'

const main = await bundledService()
const run = promisify(execFile)

it('the master key is rotated in two running processes while webhooks are signed and delivered', {
  timeout: 300_000,
}, async () => {
  const [oldKey, newKey] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')]
  for (const key of [oldKey, newKey]) noteSecret(key)
  const [oldId, newId] = [oldKey, newKey].map((key) => createSealer(Buffer.from(key, 'hex')).key_id)
  const folder = await mkdtemp(join(tmpdir(), 'portolan-master-key-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'master.key')
  const giveKeys = async (...keys: string[]) => {
    await writeFile(`${file}.next`, `${keys.join('\n')}\n`, { mode: 0o600 })
    await rename(`${file}.next`, file)
  }
  await giveKeys(oldKey)

  const database = await freshDatabase()
  const { host, user, database: name } = database.connection
  const url = `postgres:///${name}?host=${encodeURIComponent(host)}&user=${user}`
  const first = await startTestApp({ database, config: { security: { master_key: oldKey } } })
  first.installation.sealer = createSealer(Buffer.from(oldKey, 'hex'))
  const { admin, organization_id } = await first.createTenant()
  await first.stop()

  const node = await startStubNode()
  const receiver = await startReceiver()
  const config = join(folder, 'portolan.yaml')
  await writeFile(
    config,
    `chains: { c: { networks: { mainnet: { upstreams: [{ url: "${node.url}" }] } } } }\n`,
  )
  const env = {
    PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true',
    PORTOLAN_SECURITY__MASTER_KEY_REFRESH_SECONDS: '1',
    PORTOLAN_SERVER__ADMIN_LISTEN: 'off',
  }
  const start = () => startService(url, `file:${file}`, { args: ['--config', config], env })
  const services = [await start(), await start()]
  onTestFinished(() => {
    for (const { child } of services) child.kill('SIGKILL')
  })
  const clients = services.map((service) =>
    createClient({ base_url: service.url, ...admin, retries: 0 }),
  )
  const command = (keys: string, name: string) =>
    run(process.execPath, [main, 'master-key', name], {
      cwd: folder,
      env: {
        ...process.env,
        PORTOLAN_DATA_DIR: folder,
        PORTOLAN_DATABASE__URL: url,
        PORTOLAN_SECURITY__MASTER_KEY: keys,
      },
    })

  const { webhook_id } = await clients[0]!.c.RegisterWebhook({
    webhook_endpoint: receiver.url,
    confirmation: 1,
  })
  const { signing_secret: secret } = await clients[0]!.c.GetWebhookSigningSecret({ webhook_id })
  const failures: unknown[] = []
  const sent: string[] = []
  let rounds = 0
  let isRunning = true
  const call = async (turn: number) => {
    const [here, there] = [clients[turn % 2]!, clients[(turn + 1) % 2]!]
    const { webhook_history_id } = await here.c.SendTestWebhook({ webhook_id })
    sent.push(webhook_history_id)
    // What one process has just sealed, the other opens.
    const { credential } = await here.admin.CreateCredential({
      organization_id,
      name: randomUUID(),
    })
    const pair = { api_key: credential.api_key, api_secret: credential.api_secret }
    const other = createClient({ base_url: services[(turn + 1) % 2]!.url, ...pair, retries: 0 })
    await other.c.ListWebhooks({})
    const made = await here.c.RegisterWebhook({ webhook_endpoint: receiver.url, confirmation: 1 })
    await there.c.GetWebhookSigningSecret({ webhook_id: made.webhook_id })
    await there.c.RemoveWebhook({ webhook_id: made.webhook_id })
  }
  const traffic = (async () => {
    for (let turn = 0; isRunning; turn++) {
      await call(turn).catch((error: unknown) => failures.push(error))
      rounds++
      // Without a pause, commands and services take longer to start.
      await delay(50)
    }
  })()
  const until = async (more: number) => {
    const target = rounds + more
    await expect.poll(() => rounds >= target, { timeout: 60_000 }).toBe(true)
  }

  await until(4)
  // A service that lacks the key is waited for, and nothing is sealed that it could not open.
  expect(await countServicesWithout(database.db, oldId!)).toBe(0)
  expect(await countServicesWithout(database.db, newId!)).toBe(2)
  const rotating = command(`${newKey}\n${oldKey}`, 'rotate')
  let said = ''
  rotating.child.stderr?.on('data', (chunk) => {
    said += chunk
  })
  await expect.poll(() => said, { timeout: 60_000 }).toContain('Waiting for 2 running services')
  expect((await countKeyUses(database.db)).map(({ key_id }) => key_id)).not.toContain(newId)
  await giveKeys(newKey, oldKey)
  await rotating
  await until(10)
  // Until the services seal with it as well, another run seals what they have sealed meanwhile.
  await expect
    .poll(
      async () => {
        await command(`file:${file}`, 'rotate').catch(() => {})
        return (await countKeyUses(database.db)).filter(({ key_id }) => key_id !== newId)
      },
      { timeout: 60_000 },
    )
    .toEqual([])
  await giveKeys(newKey)
  await until(4)
  isRunning = false
  await traffic
  expect(failures).toEqual([])
  await end(services[0]!, 'SIGTERM')
  services[0] = await start()
  for (const service of services) {
    const client = createClient({ base_url: service.url, ...admin, retries: 0 })
    expect((await client.c.GetWebhookSigningSecret({ webhook_id })).signing_secret).toBe(secret)
  }

  const isDelivered = (id: string) =>
    receiver.received.some(({ headers }) => headers['webhook-id'] === id)
  await expect.poll(() => sent.filter((id) => !isDelivered(id)), { timeout: 60_000 }).toEqual([])
  for (const { headers, body } of receiver.received) await verifyWebhook({ secret, headers, body })
  expect(sent.length).toBeGreaterThan(15)
})
