import { once } from 'node:events'
import { chmod, readdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import { startPolkadotDevChain } from '../../devnet/polkadot/node.ts'
import { startSuiDevChain } from '../../devnet/sui/dev-chain.ts'
import { startTonDevChain } from '../../devnet/ton/ton-dev-chain.ts'
import type { Finding } from '../../src/cli/doctor/finding.ts'
import { databasePid, freshFolder, runCommand, startService } from './portolan.ts'

const doctor = async (options: Parameters<typeof runCommand>[1]) => {
  const { code, stdout } = await runCommand(['doctor', '--json'], options)
  const findings = JSON.parse(stdout) as Finding[]
  const of = (check: string) => findings.filter((finding) => finding.check === check)
  return { code, findings, of, bad: findings.filter(({ status }) => status !== 'ok') }
}

test('on a machine without an installation: no findings, and nothing is created', async () => {
  const folder = await freshFolder()
  const { code, bad, findings } = await doctor({ dataDir: join(folder, 'data') })
  expect({ code, bad }).toEqual({ code: 0, bad: [] })
  expect(findings.map(({ check }) => check)).toEqual([
    'node',
    'configuration',
    'data directory',
    'disk',
    'port',
    'database',
  ])
  expect(await readdir(folder)).toEqual([])
})

test('warns of development rules that are switched on', async () => {
  const dataDir = join(await freshFolder(), 'data')
  const env = { PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true' }
  const { code, bad } = await doctor({ dataDir, env })
  expect(code).toBe(0)
  expect(bad).toMatchObject([{ check: 'development', status: 'warning' }])
})

test('with a running service, and after it', { timeout: 180_000 }, async () => {
  const dataDir = join(await freshFolder(), 'data')
  const service = await startService(dataDir)
  const running = await doctor({ dataDir })
  expect({ code: running.code, bad: running.bad }).toEqual({ code: 0, bad: [] })
  expect(running.of('port')[0]?.detail).toBe(
    `the service is running at ${service.connection.base_url}`,
  )
  for (const check of ['database', 'schema', 'master key', 'clock'])
    expect(running.of(check)).toHaveLength(1)
  await service.stop()

  await chmod(join(dataDir, 'master.key'), 0o644)
  const stopped = await doctor({ dataDir })
  expect(stopped.code).toBe(0)
  expect(stopped.bad).toEqual([
    {
      check: 'data directory',
      status: 'warning',
      detail: `Other users may read ${dataDir}/master.key.`,
      fix: `Run: chmod 600 ${dataDir}/master.key`,
    },
  ])
  expect(await databasePid(dataDir)).toBeUndefined()

  await writeFile(join(dataDir, 'master.key'), 'f'.repeat(64))
  const wrong = await doctor({ dataDir })
  expect(wrong.code).toBe(1)
  expect(wrong.of('master key')[0]).toMatchObject({ status: 'failure' })
})

test('names what is wrong with each thing that is configured', async () => {
  const folder = await freshFolder()
  const node = createServer((_, response) =>
    response.writeHead(200).end('{"jsonrpc":"2.0","id":1,"result":"0x1"}'),
  ).listen(0, '127.0.0.1')
  const closed = createServer((_, response) => response.writeHead(401).end()).listen(0, '127.0.0.1')
  // Takes connections and says nothing.
  const socket = createTcpServer((silent) => silent.setTimeout(500, () => silent.destroy())).listen(
    0,
    '127.0.0.1',
  )
  await Promise.all([node, closed, socket].map((server) => once(server, 'listening')))
  const portOf = (server: { address(): unknown }) => (server.address() as AddressInfo).port
  await writeFile(
    join(folder, 'portolan.yaml'),
    `server: { port: ${portOf(socket)} }
database: { url: 'postgres://user:hunter2@127.0.0.1:1/portolan' }
redis: { url: 'redis://:hunter2@127.0.0.1:1' }
chains:
  c:
    networks:
      mainnet:
        upstreams:
          - { url: 'http://127.0.0.1:${portOf(node)}/hunter2', name: works }
          - { url: 'http://127.0.0.1:${portOf(closed)}/hunter2', name: closed }
          - { url: 'ws://127.0.0.1:${portOf(socket)}/hunter2', name: socket }
          - { url: 'http://127.0.0.1:1/hunter2', name: dead }
      ropsten:
        chain_id: 3
        upstreams:
          - { url: 'http://user:hunter2@127.0.0.1:${portOf(node)}', name: other }
  t: { networks: { mainnet: { upstreams: [{ url: 'http://127.0.0.1:${portOf(closed)}/hunter2' }] } } }
  s: { networks: { mainnet: { upstreams: [{ url: 'http://127.0.0.1:${portOf(node)}' }] } } }
  p: { networks: { mainnet: { upstreams: [{ url: 'ws://127.0.0.1:${portOf(closed)}/hunter2' }] } } }
`,
  )
  const env = { PORTOLAN_PORT: '' }
  const { code, findings, of } = await doctor({ dataDir: join(folder, 'data'), cwd: folder, env })
  for (const server of [node, closed, socket]) server.close()
  expect(code).toBe(1)
  expect(JSON.stringify(findings)).not.toContain('hunter2')
  for (const check of ['port', 'database', 'redis'])
    expect(of(check)).toEqual([expect.objectContaining({ status: 'failure' })])
  const nodes = of('nodes').map(({ status, detail }) => `${status}: ${detail}`)
  expect(nodes).toEqual([
    expect.stringMatching(/^ok: c mainnet works: chain 1, block 1, \d+ ms$/),
    'warning: c mainnet closed refuses the credentials: it answers with status 401.',
    expect.stringMatching(/^warning: c mainnet socket does not answer: /),
    expect.stringMatching(/^warning: c mainnet dead does not answer: /),
    'warning: c ropsten other is on chain 1, but chain_id is 3: it is not used.',
    expect.stringMatching(/^warning: t mainnet 127\S+ refuses the credentials: .*401/),
    expect.stringMatching(/^warning: s mainnet 127\S+ does not answer: /),
    expect.stringMatching(/^warning: p mainnet 127\S+ refuses the credentials: .*401/),
  ])
  for (const { status, fix } of of('nodes')) expect(fix === undefined).toBe(status === 'ok')
})

test('asks each node in its own protocol', { timeout: 180_000 }, async () => {
  const folder = await freshFolder()
  const [anvil, ton, sui, polkadot] = await Promise.all([
    startAnvil({ chainId: 4242 }),
    startTonDevChain({ blockTimeMs: 1_000 }),
    startSuiDevChain({ blockTimeMs: 1_000 }),
    startPolkadotDevChain({ manual: true }),
  ])
  for (const { stop } of [anvil, ton, sui, polkadot]) onTestFinished(stop)
  const chain = (tag: string, ...urls: string[]) =>
    `  ${tag}: { networks: { mainnet: { upstreams: [${urls.map((url) => `{ url: '${url}', name: own }`).join(', ')}] } } }\n`
  await writeFile(
    join(folder, 'portolan.yaml'),
    `chains:\n${chain('c', anvil.url, anvil.wsUrl)}${chain('t', ton.node_url)}${chain('s', sui.node_url)}${chain('p', polkadot.node_url)}`,
  )
  const { of } = await doctor({ dataDir: join(folder, 'data'), cwd: folder })
  expect(of('nodes').map(({ status, detail }) => `${status}: ${detail}`)).toEqual([
    expect.stringMatching(/^ok: c mainnet own: chain 4242, block \d+, \d+ ms$/),
    expect.stringMatching(/^ok: c mainnet own: chain 4242, block \d+, \d+ ms$/),
    expect.stringMatching(/^ok: t mainnet own: masterchain block \d+, \d+ ms$/),
    expect.stringMatching(/^ok: s mainnet own: chain [0-9a-f]{8}, checkpoint \d+, \d+ ms$/),
    expect.stringMatching(/^ok: p mainnet own: .+ \(0x\w+…\), final block \d+, \d+ ms$/),
  ])
})

test('a broken configuration ends the check', async () => {
  const env = { PORTOLAN_SERVER__PROT: '1' }
  const { code, stdout, stderr } = await runCommand(['doctor'], { env, dataDir: '/nowhere' })
  expect(code).toBe(1)
  expect(stdout.replace(/Node \d\S+/, 'Node <version>')).toMatchInlineSnapshot(`
    "✓ node            Node <version>
    ✗ configuration   Unknown variable \`PORTOLAN_SERVER__PROT\`. Did you mean \`PORTOLAN_SERVER__PORT\`?
                      → See "portolan config example" for every key.
    "
  `)
  expect(stderr).toMatchInlineSnapshot(`
    "1 problem prevents the service from working.
    "
  `)
})
