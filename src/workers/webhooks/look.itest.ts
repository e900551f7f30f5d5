import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createLook } from './look.ts'

const { db } = await freshDatabase()

/** Queues a notification of a webhook, which nothing but the queue knows. */
const enqueue = async () => {
  await sql`
    insert into delivery_queue values (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1,
      'WEBHOOK_STATUS_PENDING', now(), null, 0)`.execute(db)
}

test('one look is enough for a moment while claims find all that they ask for', async () => {
  const { look, keep, forget } = createLook(db)
  const count = async (now: number) => (await look(now)).queued.length
  await enqueue()
  expect(await count(1_000)).toBe(1)
  await enqueue()
  // Not kept: the claims after it found less.
  expect(await count(1_010)).toBe(2)
  keep()
  await enqueue()
  expect(await count(1_020)).toBe(2)
  keep()
  expect(await count(1_050)).toBe(2)
  keep()
  // By the time of the look itself, however often it was kept.
  expect(await count(1_060)).toBe(3)
  keep()
  await enqueue()
  // The clock was set back.
  expect(await count(900)).toBe(4)
  keep()
  await enqueue()
  forget()
  expect(await count(901)).toBe(5)
})

test('what is announced during a look is not missed', async () => {
  const { look, keep, forget } = createLook(db)
  const before = (await look(0)).queued.length
  const running = look(1)
  forget()
  await running
  keep()
  await enqueue()
  expect((await look(2)).queued.length).toBe(before + 1)
})
