import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from '../client/src/client.ts'
import { addressOf } from '../src/chains/evm/testing/stub-chain.ts'
import { cpuSeconds } from './lib/cpu.ts'
import type { Receivers, RecordedNodeOrder } from './recorded-node.ts'

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
  /** The process that tracks, and those of its database. */
  trackers(): Promise<number[]>
  /** Tracks the network of wallets from now on, which each service has its own of. */
  track(): Promise<void>
  /** Makes blocks of that network; its nodes do not show them yet. */
  prepare(blocks: number): Promise<void>
  /** Shows them, and waits until the tracker has stored the first of them. */
  catchUp(): Promise<void>
  /** The last stored block of that network, and how many are left. */
  tracking(): Promise<{ block_number: number; lag: number }>
  stop(): Promise<unknown>
}

const receivers: Receivers = { first: 1_000_000, count: 10_000 }
const addressesPerCall = 1_000

/** The node of the network of wallets. */
async function startRecordedNode(children: ChildProcess[]) {
  const child = fork(join(here, 'recorded-node.ts'), [JSON.stringify(receivers)])
  children.push(child)
  const [{ url, contracts }] = (await once(child, 'message')) as [
    { url: string; contracts: string[] },
  ]
  const order = async (message: RecordedNodeOrder): Promise<number> => {
    child.send(message)
    const [{ top }] = (await once(child, 'message')) as [{ top: number }]
    return top
  }
  return { url, contracts, order }
}

/** The processes of the database in a folder. */
async function databaseIn(dataDir: string): Promise<number[]> {
  const [file] = await Array.fromAsync(glob(join(dataDir, '**/postmaster.pid')))
  const [server] = (await readFile(file!, 'utf8')).split('\n')
  const list = await readFile(`/proc/${server}/task/${server}/children`, 'utf8')
  return [server!, ...list.trim().split(' ')].map(Number)
}

/** Starts the service with a folder of its own, and a network of wallets besides the given nodes. */
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
  const node = await startRecordedNode(children)
  const nodes = { mainnet: node.url, ...others }
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
  /** Those whose names begin so; of one worker the only one. */
  const named = async (begin: string): Promise<number[]> => {
    const { processes = [] } = (await status()) as { processes?: ShownProcess[] }
    const found = processes.filter(({ name }) => name.startsWith(begin)).map(({ pid }) => pid)
    return found.length > 0 ? found : [child.pid!]
  }
  const tracking = async () => {
    const { block_number, head } = (await status()).chains.c.tracking
    return { block_number, lag: head - block_number }
  }
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
    servers: () => named('worker-'),
    trackers: async () => [...(await named('background')), ...(await databaseIn(dataDir))],
    track: async () => {
      const client = createClient({ base_url, ...member })
      const chain = client.chain('c') as unknown as Record<
        'RegisterWallet' | 'BatchRegisterAddresses' | 'RegisterContract',
        (request: object) => Promise<{ wallet_id: string }>
      >
      const { wallet_id } = await chain.RegisterWallet({ name: 'bench', confirmation: 1 })
      for (let at = 0; at < receivers.count; at += addressesPerCall)
        await chain.BatchRegisterAddresses({
          wallet_id,
          addresses: Array.from({ length: addressesPerCall }, (_, index) =>
            addressOf(receivers.first + at + index),
          ),
        })
      for (const contract_address of node.contracts)
        await chain.RegisterContract({ contract_address, contract_type: 'CONTRACT_TYPE_ERC20' })
    },
    prepare: async (blocks) => void (await node.order({ grow: blocks })),
    catchUp: async () => {
      const { block_number } = await tracking()
      await node.order({ show: true })
      while ((await tracking()).block_number === block_number) await delay(20)
    },
    tracking,
    stop: async () => {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}
