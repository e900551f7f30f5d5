import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from '../../client/src/index.ts'
import type { ConnectionFile } from '../../src/app/connection-file.ts'
import { layoutOf } from '../../src/storage/embedded/layout.ts'
import { findPostmaster } from '../../src/storage/embedded/postmaster.ts'
import { bundledService } from '../helpers/bundle.ts'
import { createRandom } from '../helpers/random.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { readNumbers } from './program.ts'

const victims = ['service', 'database', 'both'] as const

/** What a campaign against the whole service came to. */
export type Outcome = {
  kills: Record<(typeof victims)[number], number>
  acknowledged: number
  lost: number
  worstRecoveryMs: number
}

type Service = { child: ChildProcess; connection: ConnectionFile }

const main = await bundledService()

const unlimited = Object.fromEntries(
  ['SECOND', 'HOUR', 'DAY', 'MONTH'].map((window) => [
    `PORTOLAN_LIMITS__PER_${window}_LIMIT`,
    '-1',
  ]),
)

async function start(dataDir: string): Promise<Service> {
  const file = join(dataDir, 'connection.json')
  await rm(file, { force: true })
  const child = spawn(process.execPath, [main, 'start', '--chains', 'none'], {
    cwd: tmpdir(),
    env: {
      ...process.env,
      CI: 'true',
      PORTOLAN_PORT: '0',
      PORTOLAN_SERVER__WORKERS: '1',
      PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true',
      PORTOLAN_DATA_DIR: dataDir,
      ...unlimited,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  let connection: ConnectionFile | undefined
  await waitFor(
    'the service is ready',
    async () => {
      if (child.exitCode !== null) throw new Error('the service ended instead of starting')
      connection = await readFile(file, 'utf8').then(JSON.parse, () => undefined)
      return connection !== undefined
    },
    { timeoutMs: 60_000 },
  )
  return { child, connection: connection as ConnectionFile }
}

const clientOf = ({ connection }: Service) =>
  createClient({ base_url: connection.base_url, ...connection.admin!, retries: 0 })

/** Kills the service, its database or both while organizations are being created over HTTP. */
export async function runServiceCampaign(options: {
  kills: number
  seed: number
  onKill?(text: string): void
}): Promise<Outcome> {
  const { kills, seed, onKill = () => {} } = options
  const random = createRandom(seed)
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-service-kill-')))
  // As root the database runs as another user, who must come through.
  await chmod(dataDir, 0o711)
  const acknowledged: string[] = []
  const counts = { service: 0, database: 0, both: 0 }
  let worstRecoveryMs = 0
  let service = await start(dataDir)
  let next = 0
  let newest = -1
  let writing = true

  const write = async (writer: number) => {
    while (writing) {
      const number = next++
      const domain = `w${writer}-${number}`
      // What fails is not acknowledged: it may be stored or not.
      await clientOf(service)
        .admin.CreateOrganization({ name: domain, domain })
        .then(
          () => {
            acknowledged.push(domain)
            newest = Math.max(newest, number)
            return delay(5)
          },
          // While the service starts, which takes longer beside busy clients.
          () => delay(50),
        )
    }
  }
  const writers = [1, 2, 3, 4].map(write)

  for (let kill = 0; kill < kills; kill++) {
    await delay(100 + random() * 900)
    const victim = victims[Math.floor(random() * victims.length)]!
    counts[victim]++
    const begun = performance.now()
    if (victim !== 'service') {
      const postmaster = await findPostmaster(layoutOf(dataDir).data)
      if (postmaster) process.kill(postmaster, 'SIGKILL')
    }
    if (victim !== 'database') {
      const ended = once(service.child, 'exit')
      service.child.kill('SIGKILL')
      await ended
      service = await start(dataDir)
    }
    // Begun after the kill: an answer that was on its way already proves nothing.
    const begunAfter = next
    await waitFor('writes continue', () => newest >= begunAfter, { timeoutMs: 60_000 })
    const recoveryMs = Math.round(performance.now() - begun)
    worstRecoveryMs = Math.max(worstRecoveryMs, recoveryMs)
    onKill(`kill ${kill + 1}: ${victim}, writing again after ${recoveryMs} ms`)
  }
  writing = false
  await Promise.all(writers)
  const client = clientOf(service)
  let lost = 0
  for (const domain of acknowledged)
    await client.admin.GetOrganizationByDomain({ domain }).catch((error: { reason?: string }) => {
      if (error.reason !== 'ORGANIZATION_NOT_FOUND') throw error
      lost++
    })
  const ended = once(service.child, 'exit')
  service.child.kill('SIGTERM')
  await ended
  await rm(dataDir, { recursive: true, force: true })
  return { kills: counts, acknowledged: acknowledged.length, lost, worstRecoveryMs }
}

if (import.meta.main) {
  const outcome = await runServiceCampaign({
    ...readNumbers({ kills: 50, seed: 1 }),
    onKill: (text) => console.log(text),
  })
  console.log(outcome)
  if (outcome.lost > 0) process.exitCode = 1
}
