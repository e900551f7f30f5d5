import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { silentLog } from '../../src/lib/log.ts'
import { startEmbeddedPostgres } from '../../src/storage/embedded/embedded-postgres.ts'
import { type Database, openDatabase } from '../../src/storage/pg/database.ts'
import { setCursor } from '../../src/storage/tracking/blocks.ts'
import { ensureNetwork } from '../../src/storage/tracking/networks.ts'
import { copyInitializedDataDir } from '../helpers/initialized-data-dir.ts'
import { freshFolder, runCommand } from './portolan.ts'

const folder = await freshFolder()
const dataDir = join(folder, 'data')
const cwd = folder
// No node answers: nothing below needs one.
const config = `chains: { c: { kind: evm, networks: { mainnet: { upstreams: [{ url: 'http://127.0.0.1:9' }] } } } }\n`
const env = { ACME_HOOK_TOKEN: 'Bearer of-acme', ACME_KAFKA_PASSWORD: 'secret-of-kafka' }

let database: Database
let server: { stop(): Promise<void> }

beforeAll(async () => {
  await copyInitializedDataDir(dataDir)
  await writeFile(join(folder, 'portolan.yaml'), config)
  // As a running service has it: commands use this server instead of starting one each.
  const started = await startEmbeddedPostgres({
    dataDir,
    log: silentLog,
    settings: { fsync: false },
  })
  server = started
  database = openDatabase({ connection: started.connection, log: silentLog, max: 2 })
  const { db } = database
  const network_id = await ensureNetwork(db, {
    ...{ chain: 'c', network: 'mainnet', create_time: new Date(), variants: 'C' },
  })
  // As if a service had stored a block: registration needs a network that is tracked.
  const block_hash = Buffer.alloc(32, 1)
  await setCursor(db, { network_id, block_number: 1, block_hash, update_time: new Date() })
})

afterAll(async () => {
  await database?.stop()
  await server?.stop()
})

const example = async (): Promise<string> => {
  const text = await readFile(join(import.meta.dirname, '../../docs/apply.md'), 'utf8')
  return /```yaml\n([\s\S]*?)```/.exec(text)![1]!
}

const apply = async (document: string, ...args: string[]) => {
  await writeFile(join(folder, 'org.yaml'), document)
  return await runCommand(['apply', '-f', 'org.yaml', ...args], { dataDir, cwd, env })
}

test('the example of the documentation is applied once', async () => {
  const document = await example()
  const plan = await apply(document, '--plan')
  expect(plan).toMatchObject({ code: 0, stderr: '' })
  expect(plan.stdout).toMatchInlineSnapshot(`
    "acme
      + organization
          name: Acme Ltd
      + key backend
          role: member
      + key reports
          role: reader
          scopes: c:read
          allowed_client_networks: 192.0.2.0/24
          expire_time: 2036-01-31T00:00:00Z
      + limits of *
          per_second_limit: 50
          per_hour_limit: 100000
          per_day_limit: 500000
          per_month_limit: 20000000
      + limits of c
          per_second_limit: 200
          per_hour_limit: 100000
          per_day_limit: 1000000
          per_month_limit: 20000000
      + quota wallets
          quota_limit: 1000
      + quota webhooks
          quota_limit: 20
      + wallet treasury on c
          confirmation: 12
      + 2 addresses in wallet treasury on c
          0x70997970c51812dc3a010c7d01b50e0d17dc79c8, 0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc
      + wallet customers on c
      + webhook https://hooks.acme.example/portolan on c
          wallet: all
          confirmation: 10
          events: transfer, transaction_state
          header: authorization
      + webhook https://hooks.acme.example/treasury on c
          wallet: treasury
          confirmation: 30
      + sink kafka payments on c
          servers: kafka.acme.example:9093
          credential: username
          credential: password
          credential: sasl_mechanism
          confirmation: 12
    13 to create, 0 to change, 0 to remove.
    "
  `)

  const done = await apply(document, '--secrets', 'secrets.jsonl')
  expect(done).toMatchObject({ code: 0, stdout: '' })
  expect(done.stderr).toContain('Applied 13 changes.')
  const file = join(folder, 'secrets.jsonl')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  const secrets = (await readFile(file, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(secrets.map((secret) => Object.keys(secret))).toEqual([
    ['organization', 'key', 'api_key', 'api_secret'],
    ['organization', 'key', 'api_key', 'api_secret'],
    ['organization', 'chain', 'webhook', 'signing_secret'],
    ['organization', 'chain', 'webhook', 'signing_secret'],
  ])

  const again = await apply(document, '--plan')
  expect(again.stdout).toBe('Nothing to change: the installation is as the document says.\n')
})

test('every change is in the audit log of the organization', async () => {
  const { rows } = await database.pool.query<{ operation: string; count: string }>(
    `select operation, count(*) from (
       select operation, organization_id from audit_pending union all select operation, organization_id from audit_event
     ) as both_tables where organization_id is not null group by operation order by operation`,
  )
  expect(
    Object.fromEntries(rows.map(({ operation, count }) => [operation, Number(count)])),
  ).toMatchInlineSnapshot(`
    {
      "BatchRegisterAddresses": 1,
      "CreateCredential": 2,
      "CreateOrganization": 1,
      "GetWebhookSigningSecret": 2,
      "ListWebhookHeaders": 2,
      "RegisterSink": 1,
      "RegisterWallet": 2,
      "RegisterWebhook": 2,
      "RegisterWebhookHeader": 1,
      "SetQuota": 2,
      "SetRateLimit": 2,
    }
  `)
})

test('changes are shown as a diff, and removed only with --prune', async () => {
  const document = (await example())
    .replace("scopes: ['c:read']", "scopes: ['c:read', 'gateway:c:read']")
    .replace("              - '0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc'\n", '')
    .replace('          - name: customers\n', '')
    .replace('confirmation: 12', 'confirmation: 20')
    .replace('      webhooks: 20\n', '')
    .replace('Acme Ltd', 'Acme Holding')
  expect((await apply(document, '--plan')).stdout).toMatchInlineSnapshot(`
    "acme
      ~ organization
          name: Acme Ltd -> Acme Holding
      ~ key reports
          scopes: c:read -> c:read, gateway:c:read
      ~ wallet treasury on c
          confirmation: 12 -> 20
    0 to create, 3 to change, 0 to remove.
    Not in the document, and left as they are (--prune removes them): 3
      acme: quota webhooks
      acme: 1 address in wallet treasury on c
      acme: wallet customers on c
    "
  `)
  const pruned = await apply(document, '--prune')
  expect(pruned.code).toBe(0)
  expect(pruned.stdout).toBe('')
  const again = await apply(document, '--plan', '--prune')
  expect(again.stdout).toBe('Nothing to change: the installation is as the document says.\n')
})

test('all problems of a document are reported with their lines, and nothing is changed', async () => {
  const bad = await apply(`organizations:
  - domain: acme
    kyes: []
    keys: [{ name: backend, role: boss }]
    limits: { c: { per_second_limit: many } }
`)
  expect(bad.code).toBe(1)
  expect(bad.stderr).toMatchInlineSnapshot(`
    "org.yaml has 3 problems:
    - Unknown key \`organizations[0].kyes\` in org.yaml line 3. Did you mean \`organizations[0].keys\`?
    - \`organizations[0].keys[0].role\` in org.yaml line 4 must be one of \`admin\`, \`owner\`, \`member\`, \`reader\`; it is \`boss\`.
    - \`organizations[0].limits.c.per_second_limit\` in org.yaml line 5 must be a count of calls, -1 for unlimited or 0 for blocked; it is \`many\`.
    "
  `)
  const meant = await apply(`organizations:
  - domain: acme
    name: Changed
    keys:
      - { name: backend, role: owner }
      - { name: backend }
    limits: { d: { per_second_limit: 1 } }
    chains:
      base: {}
      c:
        wallets: [{ name: new, addresses: ['0x12'] }]
        webhooks:
          - { webhook_endpoint: 'https://acme.example', wallet: nowhere }
          - { webhook_endpoint: 'https://acme.example', headers: { a: env:MISSING } }
`)
  expect(meant.code).toBe(1)
  expect(meant.stderr).toMatchInlineSnapshot(`
    "org.yaml has 7 problems:
    - \`organizations[0].keys[0].role\` in org.yaml line 5 differs from that of the key, which is member and cannot change. Give the key another name.
    - \`organizations[0].keys[1].name\` in org.yaml line 6 is the name of two keys.
    - \`organizations[0].limits.d\` in org.yaml line 7 is not a chain of the configuration.
    - \`organizations[0].chains.base\` in org.yaml line 9 is not a chain of the configuration on which wallets are tracked.
    - \`organizations[0].chains.c.wallets[0].addresses[0]\` in org.yaml line 11 is not an address of this chain: Must be 0x and 40 lower-case hex digits.
    - \`organizations[0].chains.c.webhooks[0].wallet\` in org.yaml line 13 is not the name of a wallet on this chain.
    - \`organizations[0].chains.c.webhooks[1].headers.a\` in org.yaml line 14 cannot be read: \`organizations[0].chains.c.webhooks[1].headers.a\` is \`env:MISSING\`, but the variable \`MISSING\` is not set.
    "
  `)
  const { rows } = await database.pool.query(`select name from organization where domain = 'acme'`)
  expect(rows).toEqual([{ name: 'Acme Holding' }])
})

test('a change that is refused stops the run; the next run continues', async () => {
  const document = `organizations:
  - domain: beta
    keys: [{ name: first }]
    quotas: { wallets: 1 }
    chains: { c: { wallets: [{ name: one }, { name: two }, { name: three }] } }
`
  const stopped = await apply(document)
  expect(stopped.code).toBe(1)
  expect(stopped.stderr).toContain('beta: wallet two on c failed:')
  expect(stopped.stderr).toContain('4 of 6 changes are applied. Run the command again to continue.')
  // The secret of the key is not lost.
  expect(JSON.parse(stopped.stdout)).toMatchObject({ organization: 'beta', key: 'first' })
  const rest = await apply(document.replace('wallets: 1', 'wallets: 9'))
  expect(rest).toMatchObject({ code: 0, stdout: '' })
  expect(rest.stderr).toContain('Applied 3 changes.')
})

test('a sink is changed by its credentials, servers and state, and shows no secret', async () => {
  const sink = (rest: string) =>
    `organizations: [{ domain: acme, chains: { c: { sinks: [{ sink_type: kafka, topic: payments, ${rest} }] } } }]`
  const login = 'username: portolan, sasl_mechanism: SCRAM-SHA-512'
  const same = `servers: [KAFKA.acme.example:9093], ${login}, password: env:ACME_KAFKA_PASSWORD`
  const none = 'Nothing to change: the installation is as the document says.\n'
  expect((await apply(sink(same), '--plan')).stdout).toBe(none)
  // Without credentials they are kept.
  expect((await apply(sink('servers: [kafka.acme.example:9093]'), '--plan')).stdout).toBe(none)
  const changed = sink(
    `servers: [b.acme.example:9093], ${login}, password: another-secret, enabled: false`,
  )
  expect((await apply(changed, '--plan')).stdout).toMatchInlineSnapshot(`
    "acme
      ~ sink kafka payments on c
          servers: kafka.acme.example:9093 -> b.acme.example:9093
          credentials: changed
          enabled: true -> false
    0 to create, 1 to change, 0 to remove.
    "
  `)
  expect(await apply(changed)).toMatchObject({ code: 0, stdout: '' })
  expect((await apply(changed, '--plan')).stdout).toBe(none)
  const { rows } = await database.pool.query('select * from sink, webhook')
  expect(JSON.stringify(rows)).not.toContain('another-secret')
  // The credentials stay, and are given again for the other server.
  const moved = changed.replace('b.acme', 'c.acme')
  expect((await apply(moved, '--plan')).stdout).not.toContain('credentials')
  expect(await apply(moved)).toMatchObject({ code: 0, stdout: '' })
  expect((await apply(moved, '--plan')).stdout).toBe(none)
  for (const [rest, detail] of [
    ['servers: [d.acme.example:9093]', 'other servers'],
    ['servers: [c.acme.example:9093], tls: false', 'a connection without encryption'],
  ] as const) {
    const unproven = await apply(sink(rest))
    expect(unproven.stdout).toBe('')
    expect(unproven.stderr).toBe(
      `\`organizations[0].chains.c.sinks[0].password\` in org.yaml line 1 is needed with ${detail}: the stored one is not sent there.\n`,
    )
  }
  expect(await apply(moved.replace('c.acme', 'b.acme'))).toMatchObject({ code: 0 })
  const fixed = await apply(sink('servers: [b.acme.example:9093], confirmation: 3'))
  expect(fixed.stderr).toMatchInlineSnapshot(`
    "\`organizations[0].chains.c.sinks[0].confirmation\` in org.yaml line 1 differs from that of the sink, which is 12 and cannot change. Remove the sink, or use another subject_prefix or topic.
    "
  `)
  const mixed = await apply(
    sink('servers: [b.acme.example:9093], sasl_mechanism: PLAIN, token: t, subject_prefix: p'),
  )
  expect(mixed.stderr.match(/sinks\[0\]\.\w+(?=`)/g)).toEqual([
    'sinks[0].subject_prefix',
    'sinks[0].token',
    'sinks[0].sasl_mechanism',
  ])
  const pruned = await apply(
    'organizations: [{ domain: acme, chains: { c: { sinks: [] } } }]',
    '--prune',
  )
  expect(pruned.stderr).toContain('- sink kafka payments on c')
  expect((await database.pool.query('select from sink where remove_time is null')).rowCount).toBe(0)
})
