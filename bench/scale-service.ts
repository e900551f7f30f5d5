import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createClient } from '../client/src/client.ts'
import { startAnvil } from '../devnet/anvil/anvil.ts'
import { cpuSeconds } from './lib/cpu.ts'

const here = import.meta.dirname

type ShownProcess = { name: string; pid: number }

/** A running service. */
export type Service = {
  workers: number
  url(network: string): string
  wsUrl(network: string): string
  /** Of all its processes, without the database. */
  cpu(): Promise<number>
  /** The processes that serve requests. */
  servers(): Promise<number[]>
  /** Mines on the network of wallets, which each service has its own of. */
  mine(blocks: number): Promise<unknown>
  /** Tracks that network from now on. */
  track(): Promise<void>
  lag(): Promise<number>
  stop(): Promise<unknown>
}

/** Starts the service with a folder of its own, and a development chain besides the given nodes. */
export async function startService({
  workers,
  nodes: others,
  dir,
  children,
}: {
  workers: number
  nodes: Readonly<Record<string, string>>
  dir: string
  /** Where its process is noted, to be ended with the program. */
  children: ChildProcess[]
}): Promise<Service> {
  const dataDir = join(dir, `data-${workers}`)
  const anvil = await startAnvil({})
  const nodes = { mainnet: anvil.url, ...others }
  const networks = Object.fromEntries(
    Object.entries(nodes).map(([name, url]) => [name, { upstreams: [{ url }] }]),
  )
  const most = '1000000000'
  const child = spawn(
    process.execPath,
    [join(here, '../bin/portolan.js'), 'start', '--chains', 'none'],
    {
      env: {
        ...process.env,
        CI: 'true',
        PORTOLAN_PORT: '0',
        PORTOLAN_SERVER__WORKERS: `${workers}`,
        PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true',
        PORTOLAN_DATA_DIR: dataDir,
        PORTOLAN_CHAINS__C: JSON.stringify({ networks, default_network: 'mainnet' }),
        PORTOLAN_SERVER__CONNECTIONS_PER_ADDRESS: '100000',
        // Divided among the workers, and the system does not divide clients evenly.
        PORTOLAN_SERVER__CONNECTIONS_LIMIT: '100000',
        PORTOLAN_GATEWAY__CONNECTIONS_PER_KEY: '100000',
        PORTOLAN_GATEWAY__SUBSCRIPTIONS_PER_KEY: '100000',
        // Limits that are checked and counted, but never reached.
        PORTOLAN_LIMITS__PER_SECOND_LIMIT: '1000000',
        PORTOLAN_LIMITS__PER_HOUR_LIMIT: most,
        PORTOLAN_LIMITS__PER_DAY_LIMIT: most,
        PORTOLAN_LIMITS__PER_MONTH_LIMIT: most,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  children.push(child)
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error('Portolan did not start')))
    child.stdout!.on('data', (chunk) => String(chunk).includes('"started"') && resolve())
  })
  const text = await readFile(join(dataDir, 'connection.json'), 'utf8')
  const { base_url, ws_url, admin_url, member } = JSON.parse(text)
  const status = async () => await (await fetch(`${admin_url}/status`)).json()
  return {
    workers,
    url: (network) => `${base_url}/c/${network}/v1/${member.api_key}`,
    wsUrl: (network) => `${ws_url}/c/${network}/v1/ws/${member.api_key}`,
    cpu: async () => {
      const { processes = [] } = (await status()) as { processes?: ShownProcess[] }
      return [child.pid!, ...processes.map(({ pid }) => pid)].reduce(
        (sum, pid) => sum + cpuSeconds(pid),
        0,
      )
    },
    servers: async () => {
      const { processes = [] } = (await status()) as { processes?: ShownProcess[] }
      const found = processes.filter(({ name }) => name.startsWith('worker-')).map(({ pid }) => pid)
      return found.length > 0 ? found : [child.pid!]
    },
    mine: (blocks) => anvil.call('anvil_mine', [`0x${blocks.toString(16)}`]),
    track: async () => {
      const client = createClient({ base_url, ...member })
      const chain = client.chain('c') as unknown as {
        RegisterWallet(request: object): Promise<object>
      }
      await chain.RegisterWallet({ name: 'bench', address: `0x${'ab'.repeat(20)}` })
    },
    lag: async () => {
      const { block_number, head } = (await status()).chains.c.tracking ?? {}
      return block_number === null || head === null ? Number.POSITIVE_INFINITY : head - block_number
    },
    stop: async () => {
      child.kill('SIGTERM')
      await once(child, 'exit')
      await anvil.stop()
    },
  }
}
