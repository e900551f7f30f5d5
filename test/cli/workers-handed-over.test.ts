import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { ShownProcess } from '../../src/app/cluster/crew.ts'
import { startStubNode } from '../gateway/stub-node.ts'
import { connect } from '../gateway-ws/client.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { freshFolder, runCommand, startService } from './portolan.ts'

// Two processes that serve requests, on connections that the supervisor accepts and passes on.
const folder = await freshFolder()
const dataDir = join(folder, 'data')
const node = await startStubNode(101)
const file = join(folder, 'portolan.yaml')
const chain = (name: string) =>
  `  ${name}: { variant: Q, networks: { mainnet: { upstreams: [{ url: "${node.url}" }] } } }\n`
const yaml = (...names: string[]) => `chains:\n${names.map(chain).join('')}`
await writeFile(file, yaml('one'))
const service = await startService(dataDir, {
  args: ['--config', file],
  env: {
    PORTOLAN_SERVER__WORKERS: '2',
    PORTOLAN_SERVER__REUSE_PORT: 'false',
    PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true',
    PORTOLAN_LIMITS__PER_SECOND_LIMIT: '-1',
  },
})
const { base_url, ws_url, admin_url, member } = service.connection

/** Calls on a connection of its own, which either process may get. */
const rpc = (tag = 'one'): Promise<{ status: number; process: string }> =>
  new Promise((resolve, reject) => {
    const sent = request(
      `${base_url}/${tag}/mainnet/v1/${member!.api_key}`,
      {
        ...{ method: 'POST', agent: false, headers: { 'content-type': 'application/json' } },
        signal: AbortSignal.timeout(20_000),
      },
      (response) => {
        // The ids of requests begin with a text that each process has its own of.
        const id = String(response.headers['x-request-id'])
        const process = id.slice(0, id.lastIndexOf('-'))
        response.resume().on('end', () => resolve({ status: response.statusCode!, process }))
      },
    )
    sent.on('error', reject)
    sent.end('{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}')
  })
const status = async () =>
  (await (await fetch(`${admin_url}/status`)).json()) as {
    processes: ShownProcess[]
    configuration: { last_reload?: { outcome: string } }
  }
/** The answers for a chain, from enough connections to reach both processes. */
const ask = (tag: string) => Promise.all(Array.from({ length: 12 }, () => rpc(tag)))
const statuses = async (tag: string) => [...new Set((await ask(tag)).map((one) => one.status))]
const openSocket = () => connect(`${ws_url}/one/mainnet/v1/ws/${member!.api_key}`)

it('requests and WebSockets reach both processes', async () => {
  const answers = await ask('one')
  expect(new Set(answers.map((one) => one.status))).toEqual(new Set([200]))
  expect(new Set(answers.map((one) => one.process)).size).toBe(2)
  const clients = await Promise.all(Array.from({ length: 6 }, openSocket))
  for (const client of clients) expect((await client.call('eth_chainId')).result).toBe('0x65')
  for (const { ws } of clients) ws.close()
})

it('a killed process is replaced, and the other one serves on', async () => {
  const before = (await status()).processes.find(({ name }) => name === 'worker-1')!.pid!
  const clients = await Promise.all(Array.from({ length: 8 }, openSocket))
  let closed = 0
  for (const client of clients) void client.closed.then(() => closed++)
  const failed: unknown[] = []
  process.kill(before, 'SIGKILL')
  await waitFor('another one serves', async () => {
    // In flight on the killed process, at most: every other one is answered.
    await rpc().catch((error) => failed.push(error))
    const now = (await status()).processes.find(({ name }) => name === 'worker-1')!
    return now.state === 'running' && now.pid !== before
  })
  await waitFor('its clients are gone', () => closed > 0)
  expect(failed.length).toBeLessThanOrEqual(1)
  expect(closed).toBeLessThan(clients.length)
  expect(new Set((await ask('one')).map((one) => one.process)).size).toBe(2)
  const again = await Promise.all(Array.from({ length: 4 }, openSocket))
  for (const client of again) expect((await client.call('eth_chainId')).result).toBe('0x65')
  for (const { ws } of [...clients, ...again]) ws.close()
})

it('a connection that a process was given in the moment of its kill is served by another one', async () => {
  const { pid } = (await status()).processes.find(({ name }) => name === 'worker-2')!
  // It takes none of what it is given from now on.
  process.kill(pid!, 'SIGSTOP')
  let answered = 0
  const asked = Array.from({ length: 6 }, () => rpc().finally(() => answered++))
  await waitFor('all but the one that was given to it', () => answered === asked.length - 1)
  process.kill(pid!, 'SIGKILL')
  const answers = await Promise.all(asked)
  expect(answers.map((one) => one.status)).toEqual(asked.map(() => 200))
  await waitFor('another one serves', async () => {
    const now = (await status()).processes.find(({ name }) => name === 'worker-2')!
    return now.state === 'running' && now.pid !== pid
  })
})

it('a reload is one step for all processes, with one report', async () => {
  const reload = () => runCommand(['config', 'reload', '--config', file], { dataDir })
  expect(await statuses('two')).toEqual([404])
  await writeFile(file, yaml('one', 'two'))
  expect(await reload()).toMatchObject({ code: 0, stdout: 'Added: two/mainnet\n' })
  expect(service.output().match(/configuration reloaded/g)).toHaveLength(1)
  expect(await statuses('two')).toEqual([200])

  await writeFile(file, `${yaml('one', 'two', 'three')}nonsense: 1\n`)
  const refused = await reload()
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('nonsense')])
  expect([await statuses('two'), await statuses('three')]).toEqual([[200], [404]])

  await writeFile(file, yaml('one', 'three'))
  service.child.kill('SIGHUP')
  await waitFor('the third chain', async () => (await statuses('three'))[0] === 200)
  expect([await statuses('two'), await statuses('three')]).toEqual([[404], [200]])
  expect((await status()).configuration.last_reload?.outcome).toBe('applied')

  // A process that started before the reload is not the only one that knows it.
  const before = (await status()).processes.find(({ name }) => name === 'worker-2')!.pid!
  process.kill(before, 'SIGKILL')
  await waitFor('another one serves', async () => {
    const now = (await status()).processes.find(({ name }) => name === 'worker-2')!
    return now.state === 'running' && now.pid !== before
  })
  const answers = await ask('three')
  expect(new Set(answers.map((one) => one.status))).toEqual(new Set([200]))
  expect(new Set(answers.map((one) => one.process)).size).toBe(2)
})

it('stops as a whole', async () => {
  const pids = (await status()).processes.map(({ pid }) => pid!)
  expect((await service.stop('SIGTERM')).code).toBe(0)
  const isRunning = (pid: number) => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }
  expect(pids.filter(isRunning)).toEqual([])
})
