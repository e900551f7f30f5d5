import { once } from 'node:events'
import { chmod, readdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Finding } from '../../src/cli/doctor/finding.ts'
import { databasePid, freshFolder, portolan, startService } from './portolan.ts'

const doctor = async (options: Parameters<typeof portolan>[1]) => {
  const { code, stdout } = await portolan(['doctor', '--json'], options)
  const findings = JSON.parse(stdout) as Finding[]
  const of = (check: string) => findings.filter((finding) => finding.check === check)
  return { code, findings, of, bad: findings.filter(({ status }) => status !== 'ok') }
}

test('on a machine where nothing was started yet: all is well, and nothing is made', async () => {
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

test('with a running service, and after it', async () => {
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
  const node = createServer((_, response) => response.writeHead(405).end()).listen(0, '127.0.0.1')
  const closed = createServer((_, response) => response.writeHead(401).end()).listen(0, '127.0.0.1')
  const socket = createTcpServer().listen(0, '127.0.0.1')
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
`,
  )
  const env = { PORTOLAN_PORT: '' }
  const { code, findings, of } = await doctor({ dataDir: join(folder, 'data'), cwd: folder, env })
  for (const server of [node, closed, socket]) server.close()
  expect(code).toBe(1)
  expect(JSON.stringify(findings)).not.toContain('hunter2')
  for (const check of ['port', 'database', 'redis'])
    expect(of(check)).toEqual([expect.objectContaining({ status: 'failure' })])
  expect(of('nodes').map(({ status }) => status)).toEqual(['ok', 'warning', 'ok', 'warning'])
})

test('a broken configuration ends the visit', async () => {
  const env = { PORTOLAN_SERVER__PROT: '1' }
  const { code, stdout, stderr } = await portolan(['doctor'], { env, dataDir: '/nowhere' })
  expect(code).toBe(1)
  expect(stdout.replace(/Node \d\S+/, 'Node <version>')).toMatchInlineSnapshot(`
    "✓ node            Node <version>
    ✗ configuration   Unknown variable \`PORTOLAN_SERVER__PROT\`. Did you mean \`PORTOLAN_SERVER__PORT\`?
                      → See "portolan config example" for every key.
    "
  `)
  expect(stderr).toMatchInlineSnapshot(`
    "1 thing keeps the service from working.
    "
  `)
})
