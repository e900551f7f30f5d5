import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../test/helpers/database.ts'
import { createLimiter } from '../domain/limits/limiter.ts'
import { createManualClock } from '../domain/limits/testing/fakes.ts'
import { silentLog } from '../lib/log.ts'
import { type Db, openDatabase } from '../storage/pg/database.ts'
import { openEvent } from '../storage/tracking/operational-events.ts'
import { loadConfig } from './config/load.ts'
import { createReadiness, createStatus, listUntracked } from './status.ts'

const { db } = await freshDatabase()
const gone = openDatabase({ connection: { host: '/nowhere' }, log: silentLog })
const clock = createManualClock(Date.UTC(2026, 0, 1))
const config = loadConfig({ env: {}, cwd: '/nowhere' })

const open = (of: Db) =>
  createStatus({
    current: () => config,
    db: of,
    roles: ['api'],
    limiter: createLimiter({ clock, log: silentLog }),
    clock,
    version: '1.2.3',
    database: 'server',
  })

describe('readiness', () => {
  it('has nothing to say while the database answers', async () => {
    expect(await createReadiness(db)()).toBeUndefined()
  })

  it('says why not when it does not', async () => {
    expect(await createReadiness(gone.db)()).toBe('The database is unreachable.')
  })
})

describe('the status', () => {
  it('reports the start time and the environment of the service', async () => {
    const status = open(db)
    clock.step(61_500)
    expect(await status()).toMatchObject({
      version: '1.2.3',
      roles: ['api'],
      start_time: '2026-01-01T00:00:00.000Z',
      uptime_seconds: 61,
      database: {
        mode: 'server',
        reachable: true,
        server_version: expect.stringMatching(/^\d+/),
        schema_version: expect.stringMatching(/^\d{4}-/),
      },
      limits: { mode: 'memory' },
    })
  })

  it('lists the operational events', async () => {
    const event = { kind: 'gap', chain: 't', network: 'mainnet', subject: '12' } as const
    await openEvent(db, { ...event, detail: 'Blocks 12 to 20.', now: new Date(clock.now()) })
    expect(await open(db)()).toMatchObject({
      events: {
        open: [
          {
            ...event,
            detail: 'Blocks 12 to 20.',
            create_time: '2026-01-01T00:01:01.500Z',
            resolve_time: null,
          },
        ],
        resolved: [],
      },
    })
  })

  it('names the networks that are not tracked, those of an earlier start too', async () => {
    const event = { kind: 'tracker_failing', chain: 'c', network: 'mainnet' } as const
    await openEvent(db, { ...event, detail: 'Tracking fails: A.', now: new Date(clock.now()) })
    const problem = {
      ...{ chain: 's', network: 'testnet', health: 'stalled' as const, since: null },
      problem: 'No node reports its head: B.',
    }
    const expected = ['c/mainnet: Tracking fails: A.', 's/testnet: No node reports its head: B.']
    expect(await listUntracked(db, [problem])).toEqual(expected)
    expect(await listUntracked(gone.db, [problem])).toEqual(expected.slice(1))
  })

  it('is there without the database too', async () => {
    const { database } = (await open(gone.db)()) as { database: object }
    expect(database).toMatchObject({ reachable: false })
    expect(database).not.toHaveProperty('server_version')
  })
})
