import { spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { sign } from 'viem/accounts'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import { stringify } from 'yaml'
import { connectionOf, layoutOf } from '../../src/storage/embedded/layout.ts'
import { freshFolder, runCommand, startService } from '../cli/portolan.ts'
import { startChain } from '../helpers/anvil.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { anvilKeys } from '../transactions/harness.ts'
import { startReceiver } from '../webhooks/receiver.ts'
import { startPrunedNode } from './pruned-node.ts'
import { openSection, type Section, wordsOf } from './runbook-section.ts'

// Causes the faults of the runbook in a service with real nodes and a real database, and follows the commands of each
// section until the signal of its alert is over. Disk full needs a disk of its own and is rehearsed by
// test/faults/disk-full.long.test.ts.

const folder = await freshFolder()
const dataDir = join(folder, 'data')
const chain = await startChain(2)
afterAll(() => chain.stop())
const config = join(folder, 'portolan.yaml')
const nodeOf = (name: string, url: string) => ({ name, url })
await writeFile(
  config,
  stringify({
    security: { development_rules: true },
    database: { pool_size: 2 },
    chains: {
      c: {
        networks: {
          mainnet: {
            upstreams: [
              nodeOf('first', chain.nodes[0]!.url),
              nodeOf('second', chain.nodes[1]!.url),
            ],
          },
        },
      },
    },
  }),
)
const service = await startService(dataDir, { args: ['--config', config] })
afterAll(() => service.stop('SIGINT'))
const { admin_url, base_url } = service.connection
const env = { PORTOLAN_CONFIG: config }

/** Runs a command of the runbook as it stands there. */
const portolan = async (command: string, codes: readonly number[] = [0]): Promise<string> => {
  const { code, stdout, stderr } = await runCommand(wordsOf(command), { dataDir, env })
  expect([command, codes.includes(code!), stderr]).toEqual([command, true, stderr])
  return stdout
}
const call = async (operation: string, request: object) =>
  JSON.parse(await portolan(`portolan call c ${operation} '${JSON.stringify(request)}'`))

/** The samples of a metric whose labels have some text. */
const metric = async (name: string, labels = ''): Promise<number[]> => {
  const text = await (await fetch(`${admin_url}/metrics`)).text()
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .filter((line) => line.includes(labels))
    .map((line) => Number(line.split(' ').at(-1)))
}
const isAt = async (name: string, labels: string, value: number) => {
  const found = await metric(name, labels)
  return found.length > 0 && found.every((one) => one === value)
}
const done = (section: Section) => expect(section.left()).toEqual([])
const patience = { timeoutMs: 100_000, everyMs: 200 }
vi.setConfig({ testTimeout: 300_000 })

const tracked = async () => (await (await fetch(`${admin_url}/status`)).json()).chains.c.tracking
const mineTracked = async (blocks: number) => {
  const live = chain.nodes.filter(({ pid }) => !gone.has(pid))
  await chain.mine(blocks, live)
  const head = await chain.height(live[0]!)
  await waitFor('the block is stored', async () => (await tracked()).block_number >= head, patience)
}
const gone = new Set<number>()

await mineTracked(5)

test('node down', async () => {
  const section = openSection('Node down')
  expect(section.alerts).toContain('PortolanNodeDown')
  const [first, second] = chain.nodes as [(typeof chain.nodes)[0], (typeof chain.nodes)[0]]
  gone.add(second.pid)
  await second.kill()
  const up = (name: string) => ['portolan_upstream_up', `upstream="${name}"`] as const
  await waitFor('the alert has its signal', () => isAt(...up('second'), 0), patience)
  expect(await portolan(section.next('portolan chains'))).toMatch(/second\s+(?:unreachable|open)/)
  expect(await portolan(section.next('portolan doctor'), [0, 1])).toContain('second')
  const spare = await startChain(1)
  const third = spare.nodes[0]!
  await chain.copy(first, third)
  // Stopped with the others.
  chain.nodes[1] = third
  const url = 'https://node-3.example/KEY'
  await portolan(section.next('portolan nodes add', { [url]: third.url }))
  await portolan(section.next('portolan nodes remove', { first: 'second' }))
  await portolan(section.next('portolan config reload'))
  await waitFor('the new node is used', () => isAt(...up('third'), 1), patience)
  expect(await metric(...up('second'))).toEqual([])
  done(section)
})

test('behind', async () => {
  const section = openSection('Behind')
  expect(section.alerts).toContain('PortolanNodeBehind')
  const [ahead, behind] = chain.nodes as [(typeof chain.nodes)[0], (typeof chain.nodes)[0]]
  await chain.mine(60, [ahead])
  const lag = ['portolan_upstream_lag', 'upstream="third"'] as const
  await waitFor(
    'the alert has its signal',
    async () => ((await metric(...lag))[0] ?? 0) >= 50,
    patience,
  )
  const shown = JSON.parse(await portolan(section.next('portolan chains --json')))
  expect(JSON.stringify(shown)).toContain('"lag"')
  const profile = section.next('curl -s -X POST', { 'seconds=10': 'seconds=1' })
  expect(profile).toContain('/debug/cpu-profile?seconds=1')
  const recorded = await fetch(`${admin_url}/debug/cpu-profile?seconds=1`, { method: 'POST' })
  expect(Object.keys((await recorded.json()) as object)).toContain('nodes')
  await chain.mine(60, [behind])
  await waitFor('it has caught up', async () => ((await metric(...lag))[0] ?? 9) <= 1, patience)
  done(section)
})

test('reorganization storm', async () => {
  const section = openSection('Reorganization storm')
  expect(section.alerts).toEqual(['PortolanReorganizationStorm'])
  await mineTracked(3)
  const count = async () => (await metric('portolan_tracker_reorganizations_total'))[0] ?? 0
  const before = await count()
  // Both nodes leave the branch for one without the last block.
  for (const node of chain.nodes) await node.call('anvil_rollback', [2])
  for (const node of chain.nodes) await node.call('anvil_setBlockTimestampInterval', [7])
  await chain.mine(4)
  await waitFor('the alert has its signal', async () => (await count()) > before, patience)
  await portolan(section.next('portolan chains'))
  await portolan(section.next('portolan nodes remove', { second: 'third' }))
  await reload()
  const to = String((await tracked()).block_number - 2)
  const looked = await portolan(section.next('portolan rewind', { 19000000: to }))
  expect(looked).toContain('Nothing was changed.')
  expect(await portolan(section.next('portolan rewind', { 19000000: to }))).toContain('Done.')
  const first = chain.nodes[0]!
  await chain.mine(1, [first])
  const head = await chain.height(first)
  await waitFor('tracking continues', async () => (await tracked()).block_number >= head, patience)
  done(section)
})

const reload = () => portolan('portolan config reload')

test('webhook disabled', async () => {
  const section = openSection('Webhook disabled')
  expect(section.alerts).toContain('PortolanWebhookDisabled')
  const receiver = await startReceiver()
  receiver.answer((response) => void response.writeHead(410).end())
  const address = `0x${'7e'.repeat(20)}`
  await call('RegisterWallet', { name: 'w', address, confirmation: 1 })
  const { webhook_id } = await call('RegisterWebhook', {
    ...{ webhook_endpoint: receiver.url, confirmation: 1 },
  })
  const first = chain.nodes[0]!
  const [from] = await first.call<string[]>('eth_accounts')
  await first.call('eth_sendTransaction', [{ from, to: address, value: '0x1' }])
  await chain.mine(2, [first])
  const disabled = () => metric('portolan_webhooks_disabled', 'chain="c"')
  await waitFor('the alert has its signal', async () => (await disabled())[0] === 1, patience)
  expect(await portolan(section.next('portolan call c ListWebhooks'))).toContain('410')
  const histories = section.next('portolan call c ListWebhookHistories', { ID: webhook_id })
  const [history] = JSON.parse(await portolan(histories)).webhook_histories
  const attempts = section.next('portolan call c ListWebhookAttempts', {
    ID: history.webhook_history_id,
  })
  expect(await portolan(attempts)).toContain('410')
  receiver.answer((response) => void response.writeHead(204).end())
  await portolan(section.next('portolan call c EnableWebhook', { ID: webhook_id }))
  await portolan(section.next('portolan call c SendTestWebhook', { ID: webhook_id }))
  const retry = section.next('portolan call c RetryWebhookHistory', { '"ID"': `"${webhook_id}"` })
  await portolan(retry)
  const arrived = () => receiver.received.filter(({ json }) => json.data?.transfers?.length).length
  await waitFor('the notification is delivered', () => arrived() >= 2, patience)
  await waitFor('the alert is over', async () => (await disabled())[0] === 0, patience)
  done(section)
})

test('pool exhausted', async () => {
  const section = openSection('Pool exhausted')
  expect(section.alerts).toEqual(['PortolanPoolExhausted'])
  // One organization has only a share of the connections, so it takes several.
  const callers = await Promise.all(
    ['acme', 'one', 'two', 'three', 'four'].map(async (domain) => {
      await portolan(`portolan organizations create ${domain}`)
      return JSON.parse(await portolan(`portolan keys create ${domain} --role owner --json`))
    }),
  )
  const connection = connectionOf(layoutOf(dataDir))
  const blocker = new pg.Client(connection)
  blocker.on('error', () => {})
  await blocker.connect()
  await blocker.query('begin')
  await blocker.query('lock table wallet in access exclusive mode')
  const waiting = callers.map(({ api_key, api_secret }) =>
    runCommand(['call', 'c', 'ListWallets'], {
      dataDir,
      env: {
        ...{ PORTOLAN_BASE_URL: base_url, PORTOLAN_API_KEY: api_key },
        PORTOLAN_API_SECRET: api_secret,
      },
    }),
  )
  const pool = ['portolan_database_connections', 'pool="requests",state="waiting"'] as const
  await waitFor(
    'the alert has its signal',
    async () => ((await metric(...pool))[0] ?? 0) > 0,
    patience,
  )
  const { host, user, database, port } = connection
  const url = `postgres:///${database}?host=${encodeURIComponent(host)}&port=${port}&user=${user}`
  const look = spawnSync('sh', ['-c', section.next('psql')], {
    env: { ...process.env, DATABASE_URL: url },
    encoding: 'utf8',
  })
  if (!look.error && look.status !== 127) expect(look.stdout).toContain('lock table wallet')
  await blocker.query('rollback')
  await blocker.end()
  await Promise.all(waiting)
  await waitFor('the alert is over', async () => (await metric(...pool))[0] === 0, patience)
  expect(await portolan(section.next('portolan top'))).toContain('ORGANIZATION')
  await portolan(section.next('portolan limits list'))
  await portolan(section.next('portolan limits set'))
  done(section)
})

test('nonce stuck', async () => {
  const section = openSection('Nonce stuck')
  expect(section.alerts).toContain('PortolanTransactionsStuck')
  const first = chain.nodes[0]!
  const accounts = await first.call<string[]>('eth_accounts')
  const [from, to] = [accounts[0]!, accounts[1]!]
  const { wallet_id } = await call('RegisterWallet', { name: 's', address: from, confirmation: 1 })
  const create = async () =>
    (await call('CreateTransaction', { wallet_id, from, to, value: '1' })).transaction
  const send = async (transaction_id: string) => {
    const asked = await call('GetTransactionMessageToSign', { transaction_id })
    const hash = asked.transaction_message_to_sign
    const signature = await sign({ hash, privateKey: anvilKeys[0], to: 'hex' })
    await call('SubmitTransactionSignature', { transaction_id, signature })
    await call('SendTransaction', { transaction_id })
  }
  const forgotten = await create()
  const later = await create()
  await send(later.transaction_id)
  // As if it had been sent long ago.
  const client = new pg.Client(connectionOf(layoutOf(dataDir)))
  await client.connect()
  await client.query(`update managed_transaction set sent_time = sent_time - interval '11 minutes'`)
  await client.end()
  const stuck = () => metric('portolan_transactions_stuck', 'chain="c"')
  await waitFor('the alert has its signal', async () => (await stuck())[0] === 1, patience)
  expect(section.next('curl -s 127.0.0.1:4001/status')).toContain('/status')
  const list = section.next('portolan call c ListTransactions', { '0xADDRESS': from })
  expect(await portolan(list)).toContain(later.transaction_id)
  const get = section.next('portolan call c GetTransaction', { ID: later.transaction_id })
  expect(JSON.parse(await portolan(get)).transaction.last_error).toContain('nonce')
  const cancel = section.next('portolan call c CancelTransaction', { ID: forgotten.transaction_id })
  await portolan(cancel)
  const filling = section.next('portolan call c CreateTransaction', {
    '"ID"': `"${wallet_id}"`,
    '0xADDRESS': from,
  })
  const { transaction } = JSON.parse(await portolan(filling))
  expect(transaction.nonce).toBe(forgotten.nonce)
  await send(transaction.transaction_id)
  await chain.mine(3, [first])
  await waitFor('the alert is over', async () => (await stuck())[0] === 0, patience)
  done(section)
})

test('key leaked', async () => {
  const section = openSection('Key leaked')
  expect(section.alerts).toEqual(['PortolanWrongCredentials'])
  const made = await portolan('portolan keys create acme --name leaked --role admin --json')
  const leaked = JSON.parse(made)
  const use = (pair: { api_key: string; api_secret: string }) =>
    runCommand(['call', 'admin', 'ListOrganizations'], {
      dataDir,
      env: {
        PORTOLAN_BASE_URL: base_url,
        PORTOLAN_API_KEY: pair.api_key,
        PORTOLAN_API_SECRET: pair.api_secret,
      },
    })
  expect((await use(leaked)).code).toBe(0)
  const listed = await portolan(section.next('portolan keys list'))
  const id = listed
    .split('\n')
    .find((line) => line.includes('leaked'))!
    .split(/\s+/)[0]!
  const audit = section.next('portolan audit export').replace(/\s*>.*$/, '')
  expect(await portolan(audit)).toContain('leaked')
  await portolan(section.next('portolan keys create'))
  await portolan(section.next('portolan keys revoke', { ID: id }))
  expect((await use(leaked)).code).toBe(1)
  await portolan(section.next('portolan organizations disable'))
  done(section)
})

test('gap', async () => {
  const section = openSection('Gap')
  expect(section.alerts).toEqual(['PortolanGap'])
  const address = `0x${'9a'.repeat(20)}`
  const { wallet_id } = await call('RegisterWallet', { name: 'g', address, confirmation: 1 })
  const first = chain.nodes[0]!
  await chain.mine(1, [first])
  const head = await chain.height(first)
  await waitFor('the block is stored', async () => (await tracked()).block_number >= head, patience)
  // A node that has pruned the blocks after this one, and the others replaced by it.
  const hidden = { from: head + 1, to: head + 19 }
  const pruned = await startPrunedNode(first.url, hidden)
  onTestFinished(pruned.stop)
  await portolan(`portolan nodes add c ${pruned.url} --name pruned`)
  await portolan('portolan nodes remove c first')
  await reload()
  const [from] = await first.call<string[]>('eth_accounts')
  await first.call('eth_sendTransaction', [{ from, to: address, value: '0x5' }])
  await chain.mine(20, [first])
  const gapBlocks = async () => (await metric('portolan_tracker_gap_blocks', 'chain="c"'))[0] ?? 0
  await waitFor('the alert has its signal', async () => (await gapBlocks()) > 0, patience)
  expect(await portolan(section.next('portolan chains'))).toMatch(
    new RegExp(`gap.*${hidden.from}`, 'i'),
  )
  const listed = async () =>
    (await call('ListTransfers', { wallet_id })).transfers.map(
      ({ value }: { value: string }) => value,
    )
  expect(await listed()).toEqual([])
  const url = 'https://archive.example/KEY'
  await portolan(section.next('portolan nodes add', { [url]: first.url }))
  const blocks = { 19000000: `${hidden.from}`, 19000010: `${hidden.to}` }
  await portolan(section.next('portolan backfill', blocks))
  await waitFor('the alert is over', async () => (await gapBlocks()) === 0, patience)
  expect(await listed()).toEqual(['5'])
  done(section)
})

test('reload refused', async () => {
  const section = openSection('Reload refused')
  expect(section.alerts).toEqual(['PortolanReloadRefused'])
  const good = await readFile(config, 'utf8')
  await writeFile(config, good.replace('pool_size: 2', 'pool_size: many'))
  await fetch(`${admin_url}/reload`, { method: 'POST' })
  const last = ['portolan_config_last_reload_successful', ''] as const
  expect(await metric(...last)).toEqual([0])
  expect(await portolan(section.next('portolan config check'), [1])).toBeDefined()
  await writeFile(config, good)
  await portolan(section.next('portolan config reload'))
  expect(await metric(...last)).toEqual([1])
  done(section)
})
