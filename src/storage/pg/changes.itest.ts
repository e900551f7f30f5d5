import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { asOwner, freshDatabase } from '../../../test/helpers/database.ts'
import { silentLog } from '../../lib/log.ts'
import { type Change, listenForChanges, notifyChange } from './changes.ts'
import type { Connection } from './database.ts'

const { db, connection } = await freshDatabase()
const change: Change = { kind: 'rate_limit', organization_id: randomUUID() }

const listen = (to: Connection = connection) => {
  const heard: Change[] = []
  const state = { heard, connects: 0 }
  const listener = listenForChanges({
    connection: to,
    onChange: (heardChange) => void heard.push(heardChange),
    onReconnect: () => void state.connects++,
    log: silentLog,
  })
  onTestFinished(listener.stop)
  return { ...listener, state }
}

test('every listener gets a change when its transaction commits, and only then', async () => {
  const listeners = [listen(), listen()]
  await expect.poll(() => listeners.every(({ state }) => state.connects === 1)).toBe(true)
  await expect(
    db.transaction().execute(async (trx) => {
      await notifyChange(trx, { kind: 'wake', topic: 'rolled back' })
      throw new Error('no')
    }),
  ).rejects.toThrow('no')
  await notifyChange(db, change)
  for (const { state } of listeners) await expect.poll(() => state.heard).toEqual([change])
})

test('a lost connection is opened again, and the caches are notified', async () => {
  const { state } = listen()
  await expect.poll(() => state.connects).toBe(1)
  await asOwner('embedded', (owner) =>
    owner.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = $1 and application_name = 'portolan listener'`,
      [connection.database],
    ),
  )
  await expect.poll(() => state.connects).toBe(2)
  await notifyChange(db, change)
  await expect.poll(() => state.heard).toEqual([change])
})

test('unreadable payloads are skipped, and a handler that throws is isolated', async () => {
  const heard: Change[] = []
  let connects = 0
  const listener = listenForChanges({
    connection,
    onChange: (heardChange) => {
      heard.push(heardChange)
      throw new Error('handler')
    },
    onReconnect: () => void connects++,
    log: silentLog,
  })
  onTestFinished(listener.stop)
  await expect.poll(() => connects).toBe(1)
  await asOwner('embedded', async () => {})
  await notifyChange(db, 'not a change' as unknown as Change)
  await notifyChange(db, change)
  await notifyChange(db, change)
  await expect.poll(() => heard.length).toBe(3)
  expect(connects).toBe(1)
})

test('stops at once while the server is unreachable', async () => {
  const { stop, state } = listen({ host: '127.0.0.1', port: 1, user: 'nologin', database: 'none' })
  const start = Date.now()
  await stop()
  expect(Date.now() - start).toBeLessThan(10_000)
  expect(state.connects).toBe(0)
})
