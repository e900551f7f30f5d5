import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import pg from 'pg'
import { Pool } from 'undici'
import { bundledService } from '../helpers/bundle.ts'
import { installPackage } from '../helpers/debian.ts'
import { freePort } from '../helpers/free-port.ts'
import { embeddedBinaries, startTestServer } from '../helpers/postgres.ts'
import { authHeaders, type Pair } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'

/** The load balancers of the campaign. */
export type Balancer = 'haproxy' | 'nginx'

/** What came of the requests. */
export type Outcome = { requests: number; restarts: number; failures: string[] }

const run = promisify(execFile)
const main = await bundledService()
const longWait = { timeoutMs: 120_000, everyMs: 50 }
const drainSeconds = 3

const hasProgram = (name: Balancer): boolean =>
  spawnSync(name, [name === 'nginx' ? '-V' : '-v']).status === 0

/** Whether the load balancer is here, installed first where that is possible. */
export const hasBalancer = async (name: Balancer): Promise<boolean> => {
  if (!hasProgram(name)) await installPackage(name)
  return hasProgram(name)
}

// Without retries of its own: what fails must be seen.
const haproxyConfig = (port: number, backends: readonly number[]) => `
global
  maxconn 1000
defaults
  mode http
  retries 0
  timeout connect 2s
  timeout client 30s
  timeout server 30s
  timeout check 5s
listen service
  bind 127.0.0.1:${port}
  http-reuse always
  option httpchk GET /ready
  http-check expect status 200
  default-server check inter 300ms fall 2 rise 1
${backends.map((backend, index) => `  server s${index} 127.0.0.1:${backend}`).join('\n')}
`

const nginxConfig = (port: number, backends: readonly number[], folder: string) => `
daemon off;
pid ${folder}/nginx.pid;
error_log stderr error;
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  upstream service {
    ${backends.map((backend) => `server 127.0.0.1:${backend} max_fails=1 fail_timeout=1s;`).join(' ')}
    keepalive 32;
  }
  server {
    listen 127.0.0.1:${port};
    keepalive_requests 1000000;
    location / {
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
}
`

async function startBalancer(
  name: Balancer,
  folder: string,
  backends: readonly number[],
): Promise<{ port: number; child: ChildProcess }> {
  const port = await freePort()
  const file = join(folder, `${name}.conf`)
  const text =
    name === 'nginx' ? nginxConfig(port, backends, folder) : haproxyConfig(port, backends)
  await writeFile(file, text)
  const args = name === 'nginx' ? ['-c', file, '-p', folder] : ['-db', '-q', '-f', file]
  const child = spawn(name, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  return { port, child }
}

/** Restarts two services behind a load balancer in turn while clients call. */
export async function runRolling(options: {
  balancer: Balancer
  requests: number
  restarts: number
  onRestart?(text: string): void
  /** What a restart starts instead of this checkout. */
  programOf?(restart: number): string
  /** Looks at the database at the end, while the services run. */
  inspect?(connection: pg.ClientConfig): Promise<void>
}): Promise<Outcome> {
  const { balancer, requests, restarts, onRestart = () => {} } = options
  const { programOf = () => main, inspect = async () => {} } = options
  const folder = await mkdtemp(join(tmpdir(), 'portolan-rolling-'))
  const postgres = await startTestServer(await embeddedBinaries())
  const { host, user, database } = postgres.connection
  const isUp = async () => {
    const session = new pg.Client(postgres.connection)
    session.on('error', () => {})
    return await session.connect().then(
      () => session.end().then(() => true),
      () => false,
    )
  }
  await waitFor('the database is up', isUp, longWait)
  const ports = [await freePort(), await freePort()]
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    PORTOLAN_DATABASE__URL: `postgres://${user}@localhost:${postgres.connection.port}/${database}?host=${encodeURIComponent(host)}`,
    PORTOLAN_SECURITY__MASTER_KEY: randomBytes(32).toString('hex'),
    PORTOLAN_SERVER__DRAIN_SECONDS: `${drainSeconds}`,
    PORTOLAN_LIMITS__PER_SECOND_LIMIT: '-1',
    PORTOLAN_LIMITS__PER_HOUR_LIMIT: '-1',
    PORTOLAN_LIMITS__PER_DAY_LIMIT: '-1',
    PORTOLAN_LIMITS__PER_MONTH_LIMIT: '-1',
  }
  const environment = (index: number) => ({
    ...env,
    PORTOLAN_DATA_DIR: join(folder, `data-${index}`),
    PORTOLAN_PORT: `${ports[index]}`,
    PORTOLAN_SERVER__WORKERS: '1',
  })
  const isReady = (index: number) =>
    fetch(`http://127.0.0.1:${ports[index]}/ready`, { headers: { connection: 'close' } }).then(
      ({ status }) => status === 200,
      () => false,
    )
  const start = async (index: number, program = main): Promise<ChildProcess> => {
    const child = spawn(process.execPath, [program, 'start'], {
      cwd: folder,
      env: environment(index),
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const look = () => {
      if (child.exitCode !== null) throw new Error('a service ended instead of starting')
      return isReady(index)
    }
    await waitFor('a service is ready', look, longWait)
    return child
  }
  const command = async (...args: string[]) =>
    (await run(process.execPath, [main, ...args], { cwd: folder, env: environment(0) })).stdout

  const services = [await start(0)]
  services.push(await start(1))
  await command('organizations', 'create', 'acme')
  const pair = JSON.parse(
    await command('keys', 'create', 'acme', '--role', 'admin', '--json'),
  ) as Pair
  const { port, child } = await startBalancer(balancer, folder, ports)
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 16, pipelining: 1 })
  await waitFor(
    'the load balancer answers',
    () =>
      pool.request({ path: '/health', method: 'GET' }).then(
        async ({ statusCode, body }) => {
          await body.dump()
          return statusCode === 200
        },
        () => false,
      ),
    longWait,
  )

  const failures: string[] = []
  let count = 0
  let isOver = false
  // One way through Node's server, two over bare sockets: an operation and the gateway.
  const path = '/v1/admin/ListOrganizations'
  const json = { 'content-type': 'application/json' }
  const kinds = [
    () => ({ expected: 200, path: '/health', method: 'GET' as const }),
    () => ({
      expected: 200,
      path,
      method: 'POST' as const,
      headers: { ...json, ...authHeaders(pair, { path, body: '{}' }) },
      body: '{}',
    }),
    () => ({
      expected: 404,
      path: '/c/none/v1/key',
      method: 'POST' as const,
      headers: json,
      body: '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}',
    }),
  ]
  const client = async (number: number) => {
    for (let turn = number; !isOver; turn++) {
      const { expected, ...request } = kinds[turn % kinds.length]!()
      count++
      try {
        const { statusCode, body } = await pool.request(request)
        const text = await body.text()
        if (statusCode !== expected)
          failures.push(`${request.path}: ${statusCode} ${text.slice(0, 200)}`)
      } catch (error) {
        failures.push(`${request.path}: ${String(error)}`)
      }
      // Some hundred requests a second. More take the processor from the service that starts.
      await delay(25)
    }
  }
  const clients = Array.from({ length: 16 }, (_, number) => client(number))
  try {
    for (let restart = 0; restart < restarts; restart++) {
      const index = restart % 2
      // Each restart has its share of the requests.
      const share = ((restart + 1) * requests) / (restarts + 1)
      await waitFor('requests', () => count >= share, { timeoutMs: 600_000 })
      onRestart(`${new Date().toISOString()} SIGTERM ${ports[index]}`)
      const ended = once(services[index]!, 'exit')
      services[index]!.kill('SIGTERM')
      await ended
      services[index] = await start(index, programOf(restart))
      // The load balancer must have seen it before the other one leaves.
      await delay(2_000)
      onRestart(`restart ${restart + 1}: ${count} requests, ${failures.length} failed`)
    }
    await waitFor('requests', () => count >= requests, { timeoutMs: 600_000 })
    await inspect(postgres.connection)
  } finally {
    isOver = true
    await Promise.all(clients)
    await pool.close()
    child.kill('SIGTERM')
    for (const service of services) service.kill('SIGKILL')
    await postgres.stop()
    await rm(folder, { recursive: true, force: true })
  }
  return { requests: count, restarts, failures }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      requests: { type: 'string', default: '20000' },
      restarts: { type: 'string', default: '6' },
      balancer: { type: 'string', default: 'haproxy' },
    },
  })
  const balancer = values.balancer as Balancer
  if (!(await hasBalancer(balancer))) throw new Error(`there is no ${balancer} here`)
  const { failures, ...outcome } = await runRolling({
    balancer,
    requests: Number(values.requests),
    restarts: Number(values.restarts),
    onRestart: (text) => console.log(text),
  })
  console.log(balancer, outcome, `${failures.length} failed`, failures.slice(0, 10))
  if (failures.length > 0) process.exitCode = 1
}
