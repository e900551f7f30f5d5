import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Anvil, startAnvil } from '../../devnet/anvil/anvil.ts'
import tokens from '../../devnet/contracts/tokens.json' with { type: 'json' }
import { findProgram } from '../helpers/brokers.ts'
import { bundledService } from '../helpers/bundle.ts'
import { freePort } from '../helpers/free-port.ts'
import { type KillableDatabase, startKillableDatabase } from '../helpers/killable-database.ts'
import { type PgBouncer, startPgBouncer } from '../helpers/pgbouncer.ts'
import { type RedisServer, startRedis } from '../helpers/redis.ts'
import type { Pair } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { createLink, type Link, type Way } from './cluster-links.ts'

/** What a process has a connection with that can be cut alone. */
export type Peer = 'pooler' | 'server' | 'redis' | 'node' | 'receiver' | 'balancer'

const servers: readonly Peer[] = ['pooler', 'server', 'redis']

/** What a process of a role talks to. */
const peersOf = (role: string): Peer[] =>
  role === 'api' || role === 'gateway'
    ? [...servers, 'node', 'balancer']
    : [...servers, role === 'courier' ? 'receiver' : 'node']

/** A process of the cluster. */
export type Member = {
  name: string
  role: string
  port: number
  /** The same for the load balancer. */
  balancedPort: number
  /** Everything that it talks to. */
  peers: readonly Peer[]
  /** Cuts it off from PostgreSQL, PgBouncer and Redis, or from one peer. */
  cut(peer?: Peer, way?: Way): Promise<void>
  heal(): void
  /** From what it learns of keys: the two ways to the database. */
  isCutFromKeys(): boolean
  signal(name: NodeJS.Signals): void
  /** Ends it, and resolves when it has ended. */
  end(name: 'SIGTERM' | 'SIGKILL'): Promise<void>
  start(): Promise<void>
}

/** A notification that the receiver has got. */
export type Received = {
  /** Of the request: each run has its own. */
  path: string
  id: string
  sequence: number
  hash: string
  states: string[]
}

/** Everything that runs. */
export type World = {
  members: Member[]
  anvil: Anvil
  database: KillableDatabase
  bouncer: PgBouncer
  redis: RedisServer
  /** The load balancer. */
  port: number
  admin: Pair
  /** An ERC-20 contract that mints for anyone. */
  token: string
  received: Received[]
  receiverUrl: string
  /** Whether limits hold without exception. */
  isStrict: boolean
  /** Whether changes of keys go over Redis, too: older versions do not do that. */
  isPublishing: boolean
  /** From now on processes start with the later version of the program. */
  upgrade(): void
  stop(): Promise<void>
}

const run = promisify(execFile)

/** Whether another version has the setting that makes limits exact while a process has lost Redis. */
const knowsStrictLimits = async (folder: string): Promise<boolean> => {
  const schema = await readFile(join(folder, 'src/app/config/sections/redis.ts'), 'utf8')
  return schema.includes('when_unreachable')
}

const haproxyConfig = (port: number, groups: Record<string, readonly number[]>) => `
global
  maxconn 2000
defaults
  mode http
  retries 2
  option redispatch
  retry-on conn-failure
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout check 2s
frontend service
  bind 127.0.0.1:${port}
  use_backend gateway if { path_beg /c/ }
  default_backend api
${Object.entries(groups)
  .map(
    ([name, ports]) => `backend ${name}
  option httpchk GET /ready/${name}
  http-check expect status 200
  default-server check inter 500ms fall 2 rise 1
${ports.map((one, index) => `  server ${name}${index} 127.0.0.1:${one}`).join('\n')}`,
  )
  .join('\n')}
`

/** Puts a contract onto the chain, and gives its address. */
async function deployToken(anvil: Anvil): Promise<string> {
  const [from] = await anvil.call<string[]>('eth_accounts')
  const data = tokens.contracts.Coin.bytecode
  const hash = await anvil.call<string>('eth_sendTransaction', [{ from, data }])
  let address: string | undefined
  await waitFor('the token is on the chain', async () => {
    const receipt = await anvil.call<{ contractAddress: string } | null>(
      'eth_getTransactionReceipt',
      [hash],
    )
    address = receipt?.contractAddress
    return address !== undefined
  })
  return address!
}

/** Collects the notifications of webhooks and answers 204. */
async function startReceiver(received: Received[]) {
  const server = createHttpServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const { webhook_history_id, data } = JSON.parse(text)
    received.push({
      path: request.url ?? '',
      id: webhook_history_id,
      sequence: data.sequence,
      hash: data.transaction_hash,
      states: (data.transfers ?? []).map((one: { transfer_state: string }) => one.transfer_state),
    })
    response.writeHead(204).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const stop = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${port}/hook`, stop }
}

/**
 * Starts the cluster: some processes of each role, with a way of their own to the servers. With the folder of an older
 * version it starts with that one, and `upgrade` is to this version; else it is to the program of a next one.
 */
export async function startWorld(
  counts: Readonly<Record<string, number>>,
  {
    older,
    next,
    blockSeconds = 1,
  }: {
    older?: string | undefined
    next?: string | undefined
    blockSeconds?: number | undefined
  } = {},
): Promise<World> {
  const isStrict = older === undefined || (await knowsStrictLimits(older))
  const isPublishing = older === undefined
  const main = await bundledService()
  let program = older === undefined ? main : join(older, 'src/main.ts')
  const ends: (() => unknown)[] = []
  // One for each process.
  process.setMaxListeners(50)
  const stop = async () => {
    for (const end of ends.reverse()) await end()
  }
  try {
    return await open()
  } catch (error) {
    await stop()
    throw error
  }

  async function open(): Promise<World> {
    const folder = await mkdtemp(join(tmpdir(), 'portolan-cluster-'))
    ends.push(() => rm(folder, { recursive: true, force: true }))
    const anvil = await startAnvil({ args: ['--block-time', `${blockSeconds}`] })
    ends.push(anvil.stop)
    const database = await startKillableDatabase({ isEmpty: older !== undefined })
    ends.push(database.stop)
    const connection = database.connection as Parameters<typeof startPgBouncer>[0]
    const bouncer = await startPgBouncer(connection, {
      sessions: 20,
      settings: 'server_login_retry = 1',
    })
    const redis = await startRedis()
    const haproxy = await findProgram('haproxy', '-v')
    if (!bouncer || !redis || !haproxy)
      throw new Error('pgbouncer, redis-server and haproxy are needed')
    ends.push(bouncer.stop, redis.stop)
    const received: Received[] = []
    const receiver = await startReceiver(received)
    ends.push(receiver.stop)
    const receiverLink = await createLink({ port: Number(new URL(receiver.url).port) })
    ends.push(receiverLink.stop)
    const token = await deployToken(anvil)
    const configOf = (nodeUrl: string) => `
chains: { c: { kind: evm, networks: { mainnet: { upstreams: [{ url: '${nodeUrl}' }] } } } }
webhooks: { allow_http: true, allowed_networks: ['127.0.0.0/8'] }
logging: { level: warn, format: json }
server: { workers: 1 }
limits: { replicas: ${counts.gateway ?? 1} }
`
    await writeFile(join(folder, 'portolan.yaml'), configOf(anvil.url))
    const { user, database: name, host, port: serverPort } = connection
    const env = {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      PORTOLAN_SECURITY__MASTER_KEY: randomBytes(32).toString('hex'),
      PORTOLAN_SERVER__DRAIN_SECONDS: '2',
    }
    const direct = `postgres:///${name}?host=${encodeURIComponent(host)}&user=${user}`
    // The first key is made on the database, as operators do.
    const command = async (...args: string[]) =>
      (
        await run(process.execPath, [program, ...args], {
          cwd: folder,
          env: { ...env, PORTOLAN_DATABASE__URL: direct, PORTOLAN_DATA_DIR: join(folder, 'cli') },
        })
      ).stdout

    const createMember = async (role: string, index: number): Promise<Member> => {
      const links = {
        pooler: await createLink({ port: Number(new URL(bouncer.url).port) }),
        server: await createLink({ path: join(host, `.s.PGSQL.${serverPort}`) }),
        redis: await createLink({ path: redis.url }),
        node: await createLink({ port: Number(new URL(anvil.url).port) }),
      }
      const port = await freePort()
      const balancerLink = await createLink({ port })
      const linkOf = (peer: Peer): Link =>
        peer === 'receiver'
          ? receiverLink
          : peer === 'balancer'
            ? balancerLink
            : links[peer as keyof typeof links]
      const home = join(folder, `home-${role}-${index}`)
      await mkdir(home)
      await writeFile(join(home, 'portolan.yaml'), configOf(`http://127.0.0.1:${links.node.port}`))
      const url = (link: Link) => `postgres://${user}@127.0.0.1:${link.port}/${name}`
      let child: ChildProcess | undefined
      // The last that it wrote, for the error when it does not become ready.
      let words = ''
      let cut: readonly Peer[] = []
      const launch = () => {
        child = spawn(process.execPath, [program, 'start', '--roles', role], {
          cwd: home,
          env: {
            ...env,
            PORTOLAN_PORT: `${port}`,
            PORTOLAN_DATA_DIR: join(folder, `${role}-${index}`),
            PORTOLAN_SERVER__ADMIN_LISTEN: 'off',
            PORTOLAN_DATABASE__URL: url(links.pooler),
            PORTOLAN_DATABASE__DIRECT_URL: url(links.server),
            PORTOLAN_REDIS__URL: `redis://127.0.0.1:${links.redis.port}`,
            ...(isStrict && { PORTOLAN_REDIS__WHEN_UNREACHABLE: 'refuse' }),
          },
          stdio: ['ignore', 'ignore', 'pipe'],
        })
        child.stderr?.on('data', (text) => {
          words = `${words}${text}`.slice(-2_000)
          process.stderr.write(text)
        })
        child.once('exit', (code, signal) => {
          words = `${words}it ended: ${code ?? signal}\n`.slice(-2_000)
          balancerLink.shut()
        })
      }
      const isReady = () =>
        fetch(`http://127.0.0.1:${port}/ready`, { signal: AbortSignal.timeout(2_000) }).then(
          ({ status }) => status === 200,
          () => false,
        )
      const start = async () => {
        launch()
        const look = async () => {
          // As a supervisor does: a start fails while the database is unreachable.
          if (child?.exitCode !== null || child.signalCode !== null) launch()
          return await isReady()
        }
        await waitFor(`${role} ${index} is ready`, look, {
          timeoutMs: 180_000,
          everyMs: 500,
        }).catch((error: Error) => {
          throw new Error(`${error.message}; it wrote: ${words}`)
        })
        await balancerLink.open()
      }
      const end = async (signal: 'SIGTERM' | 'SIGKILL') => {
        if (!child || child.exitCode !== null || child.signalCode !== null) return
        const ended = once(child, 'exit')
        child.kill(signal)
        await ended
      }
      // A run that is broken off must not leave processes behind.
      const endWithUs = () => child?.kill('SIGKILL')
      process.once('exit', endWithUs)
      ends.push(async () => {
        process.off('exit', endWithUs)
        child?.kill('SIGCONT')
        await end('SIGKILL')
        for (const link of [...Object.values(links), balancerLink]) link.stop()
      })
      return {
        ...{ name: `${role} ${index}`, role, port, balancedPort: balancerLink.port, start, end },
        peers: peersOf(role),
        isCutFromKeys: () => cut.includes('pooler') || cut.includes('server'),
        cut: async (peer, way = 'both') => {
          cut = peer ? [peer] : servers
          // All couriers have one way to the receiver.
          const pid = peer === 'receiver' ? child?.pid : undefined
          for (const one of cut) await linkOf(one).cut(way, pid)
        },
        heal: () => {
          for (const one of cut) linkOf(one).heal()
          cut = []
        },
        signal: (signal) => void child?.kill(signal),
      }
    }

    const members: Member[] = []
    for (const [role, count] of Object.entries(counts))
      for (let index = 0; index < count; index++) members.push(await createMember(role, index))
    // The first one migrates the database.
    const [first, ...others] = members
    await first?.start()
    await Promise.all(others.map((member) => member.start()))
    await command('organizations', 'create', 'acme')
    const admin = JSON.parse(
      await command('keys', 'create', 'acme', '--role', 'admin', '--json'),
    ) as Pair
    const port = await freePort()
    const portsOf = (role: string) =>
      members.filter((one) => one.role === role).map((one) => one.balancedPort)
    const file = join(folder, 'haproxy.cfg')
    await writeFile(file, haproxyConfig(port, { api: portsOf('api'), gateway: portsOf('gateway') }))
    const balancer = spawn(haproxy, ['-db', '-q', '-f', file], { stdio: 'ignore' })
    process.once('exit', () => balancer.kill('SIGKILL'))
    ends.push(() => balancer.kill('SIGKILL'))
    const isServed = (path: string) =>
      fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(2_000) }).then(
        ({ status }) => status !== 503,
        () => false,
      )
    await waitFor('the load balancer serves', async () => {
      const served = await Promise.all(['/ready', '/c/mainnet'].map(isServed))
      return served.every(Boolean)
    })
    return {
      ...{ members, anvil, database, bouncer, redis, port, admin, token, received },
      receiverUrl: `http://127.0.0.1:${receiverLink.port}/hook`,
      isStrict,
      isPublishing,
      upgrade: () => {
        program = older === undefined ? (next ?? main) : main
      },
      stop,
    }
  }
}
