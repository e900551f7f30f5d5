import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { databaseUrl } from '../../../test/helpers/app.ts'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { silentLog } from '../../lib/log.ts'
import { loadConfig } from '../config/load.ts'
import type { ShownProcess } from './crew.ts'
import { startSupervisor } from './supervisor.ts'

const folder = await mkdtemp(join(tmpdir(), 'portolan-growth-'))
afterAll(() => rm(folder, { recursive: true, force: true }))

/** The status of an answer on a connection of its own. */
const ask = (url: string): Promise<number | string> =>
  new Promise((resolve) => {
    request(url, { agent: false, timeout: 20_000 }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode!))
    })
      .on('error', (error) => resolve(String(error)))
      .end()
  })

// With one core the service is one process.
test.skipIf(availableParallelism() < 2 || process.platform !== 'linux')(
  'a busy service continues in several processes, and clients do not notice',
  async () => {
    const database = await freshDatabase()
    const config = loadConfig({
      env: {},
      cwd: folder,
      overrides: {
        data_dir: folder,
        server: { port: 0, admin_listen: '127.0.0.1:0' },
        database: { url: databaseUrl(database.connection) },
        security: { master_key: randomBytes(32).toString('hex') },
        logging: { level: 'silent' },
      },
    })
    const service = await startSupervisor({
      ...{ config, env: {}, cwd: folder, log: silentLog, version: '1.2.3' },
      // At once, however little there is to do.
      growth: { busyShare: 0, samples: 1, everyMs: 500, pauseMs: 60_000 },
    })
    const processes = async () => {
      const answer = await fetch(`${service.admin_url}/status`)
      return ((await answer.json()) as { processes: ShownProcess[] }).processes
    }
    try {
      expect(await processes()).toMatchObject([{ name: 'service', pid: process.pid }])
      const statuses: (number | string)[] = []
      let asked = 0
      await waitFor(
        'the service has grown',
        async () => {
          statuses.push(await ask(`${service.base_url}/ready`))
          // Every process makes its whole status for an answer: as often as `/ready` it would delay the growth itself.
          if (++asked % 10 !== 0) return false
          const names = (await processes()).map(({ name }) => name)
          return names.includes('worker-2') && !names.includes('service')
        },
        { timeoutMs: 120_000, everyMs: 20 },
      )
      // Also while the first process gives the port up.
      for (let turn = 0; turn < 60; turn++) {
        statuses.push(await ask(`${service.base_url}/ready`))
        await new Promise((resolve) => setTimeout(resolve, 25))
      }
      expect(new Set(statuses)).toEqual(new Set([200]))
    } finally {
      await service.stop()
    }
  },
  180_000,
)
