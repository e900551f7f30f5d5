import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createClient } from '../../client/src/index.ts'
import type { ConnectionFile } from '../../src/app/connection-file.ts'
import type { WalletService } from '../../src/contract/variant.ts'
import { createRandom } from '../helpers/random.ts'
import { waitFor } from '../helpers/wait-for.ts'
import {
  balanceOnChain,
  mintTokens,
  notePast,
  readPast,
  tokensOnChain,
  waitForQuery,
} from './local-chains.ts'
import { readNumbers } from './program.ts'

/** How a service ends: asked to, killed, or killed with every process of its installation. */
const ends = ['stop', 'kill', 'crash'] as const

/** What restarts of the embedded mode came to. */
export type Outcome = {
  restarts: Record<(typeof ends)[number], number>
  /** Lines of the log that are warnings or worse, of the starts after a stop in order. */
  complaints: string[]
}

type Service = {
  child: ChildProcess
  connection: ConnectionFile
  /** The log of this start. */
  lines(): { level: string; msg: string }[]
}

const run = promisify(execFile)
const program = join(import.meta.dirname, '../../bin/portolan.js')
const tracked = ['c', 't', 's', 'p'] as const
const longWait = { timeoutMs: 240_000, everyMs: 200 }

async function start(dataDir: string, args: readonly string[]): Promise<Service> {
  const file = join(dataDir, 'connection.json')
  await rm(file, { force: true })
  const child = spawn(process.execPath, [program, 'start', ...args], {
    cwd: tmpdir(),
    env: {
      ...process.env,
      CI: 'true',
      PORTOLAN_PORT: '0',
      PORTOLAN_SERVER__WORKERS: '1',
      PORTOLAN_DATA_DIR: dataDir,
      PORTOLAN_LOGGING__FORMAT: 'json',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  let connection: ConnectionFile | undefined
  await waitFor(
    'the service is ready',
    async () => {
      if (child.exitCode !== null) throw new Error(`the service ended instead of starting: ${text}`)
      connection = await readFile(file, 'utf8').then(JSON.parse, () => undefined)
      return connection !== undefined
    },
    longWait,
  )
  const lines = () =>
    text
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line))
  return { child, connection: connection as ConnectionFile, lines }
}

async function end({ child }: Service, how: (typeof ends)[number], dataDir: string): Promise<void> {
  const ended = once(child, 'exit')
  if (how === 'crash') for (const pid of await processesOf(dataDir)) kill(pid)
  child.kill(how === 'stop' ? 'SIGTERM' : 'SIGKILL')
  await ended
}

/** Every process that names the data directory: databases and chains. */
async function processesOf(dataDir: string): Promise<number[]> {
  const { stdout } = await run('ps', ['-ww', '-eo', 'pid=,args='])
  return stdout
    .split('\n')
    .filter((line) => line.includes(dataDir))
    .map((line) => Number(line.trim().split(' ')[0]))
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

type Status = {
  chains: Record<
    string,
    { tracking?: { health: string; state: string; block_number: number; problem: string } }
  >
}

const statusOf = async ({ connection }: Service): Promise<Status> =>
  (await (await fetch(new URL('/status', connection.admin_url))).json()) as Status

/** Waits until every chain is tracked and has moved on since the start. */
async function waitUntilTracked(service: Service): Promise<void> {
  const before = await statusOf(service)
  await waitFor(
    'every chain is tracked',
    async () => {
      const { chains } = await statusOf(service)
      return tracked.every((tag) => {
        const now = chains[tag]?.tracking
        const then = before.chains[tag]?.tracking?.block_number ?? -1
        return now?.state === 'leading' && now.health === 'ok' && now.block_number > then + 1
      })
    },
    longWait,
  ).catch(async (error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(await statusOf(service))}`)
  })
}

/** The demo wallets, as the service found or made them. */
const demoOf = async (
  dataDir: string,
): Promise<Record<WalletService, { wallet_id: string; address: string }>> =>
  JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'))

/** Waits until the stored balances of the demo wallets are those of the chains. */
async function compareBalances({ connection }: Service, dataDir: string): Promise<void> {
  const client = createClient({ base_url: connection.base_url, ...connection.admin! })
  const kept = await demoOf(dataDir)
  const compare = async (
    service: WalletService,
    asset_type: string,
    readOwn: (address: string) => Promise<bigint>,
  ) => {
    const { wallet_id, address } = kept[service]
    let both = { stored: 0n, own: 0n }
    await waitFor(
      `the balance of ${asset_type}`,
      async () => {
        const { assets } = await client[service].ListAssets({ wallet_id, asset_type } as never)
        const stored = BigInt(assets[0]?.balance ?? 0)
        const own = await readOwn(address)
        both = { stored, own }
        return stored === own && own > 0n
      },
      longWait,
    ).catch((error: Error) => {
      throw new Error(`${error.message}: ${both.stored} stored, ${both.own} on the chain`)
    })
  }
  for (const service of tracked)
    await compare(service, `ASSET_TYPE_${service.toUpperCase()}`, (address) =>
      balanceOnChain(connection, service, address),
    )
  // Of the families, only C has a token in the demo.
  await compare('c', 'ASSET_TYPE_ERC20', (address) => tokensOnChain(connection, address))
}

/**
 * Starts the embedded mode again and again. Each time all five chains must be the same as before: those of wallets are
 * tracked, and chain Q answers with new blocks and an old transaction. In the end the balances are those of the chains.
 */
export async function runRestarts(options: {
  restarts: number
  seed: number
  onRestart?(text: string): void
}): Promise<Outcome> {
  const { restarts, seed, onRestart = () => {} } = options
  const random = createRandom(seed)
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-restarts-')))
  // As root the database runs as another user, who must come through.
  await chmod(dataDir, 0o711)
  const counts = { stop: 0, kill: 0, crash: 0 }
  const complaints: string[] = []
  let service = await start(dataDir, [])
  try {
    await waitUntilTracked(service)
    await waitForQuery(service.connection)
    const past = await notePast(service.connection, dataDir)
    for (let restart = 1; restart <= restarts; restart++) {
      // Each way first, then any.
      const how = ends[restart <= 3 ? restart - 1 : Math.floor(random() * ends.length)]!
      counts[how]++
      const begun = performance.now()
      await mintTokens(service.connection, (await demoOf(dataDir)).c.address)
      await end(service, how, dataDir)
      service = await start(dataDir, restart === restarts ? ['--no-traffic'] : [])
      const seconds = ((performance.now() - begun) / 1000).toFixed(1)
      await waitUntilTracked(service)
      await waitForQuery(service.connection)
      assert.deepEqual(await readPast(service.connection, past), past.facts)
      // What a crash interrupts may be worth a warning; an orderly stop leaves nothing to complain of.
      if (how === 'stop')
        complaints.push(
          ...service
            .lines()
            .filter(({ level }) => level !== 'info')
            .map((line) => JSON.stringify(line)),
        )
      onRestart(`restart ${restart}: ${how}, ready after ${seconds} s`)
    }
    await compareBalances(service, dataDir)
  } finally {
    await end(service, 'stop', dataDir)
    await rm(dataDir, { recursive: true, force: true })
  }
  return { restarts: counts, complaints }
}

if (import.meta.main) {
  const outcome = await runRestarts({
    ...readNumbers({ restarts: 10, seed: 1 }),
    onRestart: (text) => console.log(text),
  })
  console.log(outcome)
  if (outcome.complaints.length > 0) process.exitCode = 1
}
