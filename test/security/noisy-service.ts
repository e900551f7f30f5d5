import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { processFlags } from '../../src/app/cluster/member.ts'
import type { ConnectionFile } from '../../src/app/connection-file.ts'
import { authHeaders, type Pair } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { webhookQuota } from './abuses.ts'

/** The service of the noisy-neighbour program, with its node. */
export type NoisyService = {
  base_url: string
  admin_url: string
  /** Sends coin; see `createFund`. */
  fund_url: string
  /** Lets the thread that takes samples for a profile run beside the main thread, which no figure allows. */
  share(): Promise<void>
  /** Makes the node collect its garbage. */
  settleNode(): Promise<void>
  /** A credential of a new organization, with its own limit of calls per second or the default. */
  create(domain: string, perSecond?: number): Promise<Pair>
  /** Seconds of CPU that the process of the service, and its database, have used. */
  cpu(): Promise<{ service: number; database: number }>
  stop(): Promise<void>
}

const main = join(import.meta.dirname, '../../src/main.ts')
const run = promisify(execFile)

/** Every process below one, with its command line. */
const descendants = async (root: number): Promise<{ pid: number; command: string }[]> => {
  const parents = new Map<number, number>()
  for (const name of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
    const stat = await readFile(`/proc/${name}/stat`, 'latin1').catch(() => '')
    // The name of the command is in parentheses and may contain spaces.
    parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
  }
  const isBelow = (pid: number): boolean =>
    pid === root || (pid > 1 && isBelow(parents.get(pid) ?? 0))
  const below = [...parents.keys()].filter(isBelow)
  return Promise.all(
    below.map(async (pid) => ({
      pid,
      command: await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => ''),
    })),
  )
}

const pin = (cores: string, pid: number, scope: readonly string[] = ['--all-tasks']) =>
  run('taskset', [...scope, '--pid', '--cpu-list', cores, `${pid}`]).catch(() => {})

/** Lets a thread run whenever it has something to do; only root may. */
const runAtOnce = (pid: number, priority: string) =>
  run('chrt', ['--reset-on-fork', '--fifo', '--pid', priority, `${pid}`]).catch(() => {})

/** Lets threads of one priority take turns. */
const takeTurns = (pid: number, priority: string, ...options: readonly string[]) =>
  run('chrt', [...options, '--rr', '--pid', priority, `${pid}`]).catch(() => {})

const kernelSettings: Readonly<Record<string, string>> = {
  // By default the kernel takes a core from all real-time threads for 50 ms of a second in which they used the rest of it.
  '/proc/sys/kernel/sched_rt_runtime_us': '-1',
  // By default a statement that works for long keeps a core for 100 ms while others wait.
  '/proc/sys/kernel/sched_rr_timeslice_ms': '1',
}

/** Returns what restores them, which also the end of this process does. */
const setKernel = async (): Promise<() => void> => {
  const before: [string, string][] = []
  const restore = () => {
    process.off('exit', restore)
    for (const [file, value] of before.splice(0)) writeFileSync(file, value)
  }
  process.once('exit', restore)
  for (const [file, value] of Object.entries(kernelSettings)) {
    const old = (await readFile(file, 'utf8').catch(() => '')).trim()
    const isSet = await writeFile(file, value).then(
      () => true,
      () => false,
    )
    if (isSet) before.push([file, old])
    else console.error(`${file} cannot be changed here: the figures have stalls of the scheduler.`)
  }
  return restore
}

/**
 * Gives the main thread of the service one core, and what measures, the node and the abuser the other one. In production each
 * has a machine of its own. All but the abuser have a real-time policy: the kernel moves such a thread to a free core at once,
 * while an ordinary one stays on the queue of a busy core for some milliseconds. What measures runs before the node and
 * the service, and those before the database and the helper threads, which use what is left of both cores in the shortest
 * turns that the kernel has, the database first: a turn is 4 ms here, and with one priority operations waited 20 ms for the helper
 * threads of a service that collects garbage, where the database has a machine of its own in production. With ordinary or idle helper threads, the main thread waited up to 30 ms for one in a garbage
 * collection; without turns, a statement of the abuser or a helper thread held a core until it had ended.
 */
const separateCores = async (service: number): Promise<void> => {
  await pin('1', process.pid)
  await runAtOnce(process.pid, '5')
  for (const { pid, command } of await descendants(service)) {
    if (pid === service || isMember(command)) {
      await pin('0,1', pid)
      // Its other threads collect garbage, and the main thread waits for them.
      for (const thread of await readdir(`/proc/${pid}/task`))
        await takeTurns(Number(thread), '1', '--reset-on-fork')
      await pin('0', pid, [])
      await runAtOnce(pid, '3')
    } else {
      await pin('0,1', pid)
      // Connections that are opened later inherit it.
      await takeTurns(pid, '2')
    }
  }
}

/** Whether a process below the service is one of its own, and not of the database. */
const isMember = (command: string): boolean => command.includes('app/cluster/worker')

/**
 * What the abuser's own program does is done on another machine in production, so it gets the rest of its core only: any
 * other thread that wakes up interrupts it at once, which a low priority alone does not achieve.
 */
export const giveTheRest = (
  pid: number,
  scope: readonly string[] = ['--all-tasks'],
): Promise<unknown> => run('chrt', [...scope, '--idle', '--pid', '0', `${pid}`]).catch(() => {})

const ticksPerSecond = 100

const cpuOf = async (pid: number): Promise<number> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // In user mode and in the kernel, by itself and by its children that have ended.
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / ticksPerSecond
}

/** Stops a child and waits until it has ended. */
export const stopChild = async (child: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

/**
 * For programs that may interrupt the database. A full garbage collection took 20 ms of its core, and the p99 of operations
 * was 20 ms on either side at random. So the space for new objects holds what a window needs, and what is old is collected
 * before a window. Without helper threads: one has an ordinary priority, so the main thread waited for it in a spin lock
 * until the kernel interrupts real-time threads after 950 ms, and the database stood still meanwhile.
 */
export const steadyFlags: readonly string[] = [
  ...['--single-threaded', '--expose-gc'],
  ...['--min-semi-space-size=64', '--max-semi-space-size=64'],
]

const startNode = async (): Promise<{ child: ChildProcess; url: string }> => {
  const program = join(import.meta.dirname, 'scripted-node.ts')
  const child = spawn(process.execPath, [...steadyFlags, program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await pin('1', child.pid!)
  await runAtOnce(child.pid!, '4')
  for await (const line of createInterface({ input: child.stdout! }))
    return { child, url: `http://127.0.0.1:${line}` }
  throw new Error('The node did not start.')
}

/** Starts the service on the scripted node, or with a local anvil. */
export async function startNoisyService(
  node: 'scripted' | 'anvil',
  workers: string,
): Promise<NoisyService> {
  const folder = await mkdtemp(join(tmpdir(), 'portolan-noisy-'))
  // As root the database runs as another user, who must come through.
  await chmod(folder, 0o711)
  const dataDir = join(folder, 'data')
  const scripted = node === 'scripted' ? await startNode() : undefined
  const config = join(folder, 'portolan.yaml')
  if (scripted) {
    const network = { upstreams: [{ url: scripted.url }] }
    await writeFile(
      config,
      JSON.stringify({ chains: { c: { variant: 'C', networks: { mainnet: network } } } }),
    )
  }
  const env = {
    ...process.env,
    CI: 'true',
    PORTOLAN_DATA_DIR: dataDir,
    PORTOLAN_PORT: '0',
    PORTOLAN_SERVER__WORKERS: workers,
    // Webhooks of this program go to loopback.
    PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true',
    PORTOLAN_QUOTAS__WEBHOOKS: `${webhookQuota}`,
  }
  // As the processes of the service that serve requests have it by default (`member.ts`), and not as this program has it.
  const { NODE_OPTIONS: options = '' } = process.env
  const args = [
    ...processFlags(['api'], { execArgv: [], options }),
    main,
    'start',
    ...(scripted ? ['--config', config] : ['--chains', 'c']),
  ]
  const service = spawn(process.execPath, args, {
    ...{ cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'] as const },
  })
  const file = join(dataDir, 'connection.json')
  const connection = (): Promise<ConnectionFile | undefined> =>
    readFile(file, 'utf8').then(JSON.parse, () => undefined)
  await waitFor('the service is ready', async () => (await connection()) !== undefined, {
    timeoutMs: 120_000,
  })
  const { base_url, admin_url = '', admin } = (await connection())!
  const restoreKernel = await setKernel()
  await separateCores(service.pid!)
  const administer = async (operation: string, request: object) => {
    const path = `/v1/admin/${operation}`
    const body = JSON.stringify(request)
    const headers = { 'content-type': 'application/json', ...authHeaders(admin!, { path, body }) }
    const answer = await fetch(`${base_url}${path}`, { method: 'POST', headers, body })
    if (answer.status !== 200) throw new Error(`${operation}: ${await answer.text()}`)
    return await answer.json()
  }
  return {
    ...{ base_url, admin_url },
    fund_url: scripted ? `${scripted.url}/fund` : `${base_url}/dev/v1/faucet`,
    share: async () => {
      await pin('0,1', service.pid!)
      await run('chrt', ['--all-tasks', '--other', '--pid', '0', `${service.pid}`]).catch(() => {})
    },
    settleNode: async () => {
      if (scripted) await fetch(`${scripted.url}/collect`, { method: 'POST', body: '{}' })
    },
    create: async (domain, perSecond) => {
      const { organization } = await administer('CreateOrganization', { name: domain, domain })
      const { organization_id } = organization
      const others = { per_hour_limit: -1, per_day_limit: -1, per_month_limit: -1 }
      if (perSecond)
        await administer('SetRateLimit', {
          ...{ organization_id, chain: 'c', per_second_limit: perSecond, ...others },
        })
      const { credential } = await administer('CreateCredential', { organization_id })
      return credential as Pair
    },
    cpu: async () => {
      let [own, database] = [await cpuOf(service.pid!), 0]
      for (const { pid, command: line } of await descendants(service.pid!))
        if (pid !== service.pid && line.includes('postgres')) database += await cpuOf(pid)
        else if (isMember(line)) own += await cpuOf(pid)
      return { service: own, database }
    },
    stop: async () => {
      try {
        await stopChild(service, 'SIGTERM')
        if (scripted) await stopChild(scripted.child, 'SIGTERM')
      } finally {
        restoreKernel()
      }
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
