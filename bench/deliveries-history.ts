import { randomUUIDv7 } from 'node:crypto'
import { sql } from 'kysely'
import { listDeliveries } from '../src/storage/webhooks/deliveries.ts'
import {
  claimDeliveries,
  listQueuedWebhooks,
  releaseClaims,
} from '../src/storage/webhooks/delivery-claims.ts'
import type { BenchDatabase } from './lib/bench-database.ts'
import { addWebhook, at, type BenchReceiver, number, ownerIn, queue } from './lib/delivery-bench.ts'
import { table, writeSection } from './lib/results.ts'

/** Pages and claims beside a long history. */
export async function benchHistory(
  database: BenchDatabase,
  { receiver, command, rows }: { receiver: BenchReceiver; command: string; rows: number },
): Promise<void> {
  const { db } = database
  const owner = await ownerIn(db)
  const hooks: string[] = []
  for (let made = 0; made < 20; made++) hooks.push(await addWebhook(db, owner, `${receiver.url}/a`))
  const span = rows * 1000
  const begin = Date.now() - span
  const timed = async (work: () => Promise<unknown>) => {
    const begun = performance.now()
    await work()
    return performance.now() - begun
  }
  const claim = async () => {
    const times: number[] = []
    for (let run = 0; run < 200; run++) {
      let claims: Awaited<ReturnType<typeof claimDeliveries>> = []
      times.push(
        await timed(async () => {
          const [due] = (await listQueuedWebhooks(db)).webhooks
          const now = new Date()
          const expire = new Date(now.getTime() + 60_000)
          claims = await claimDeliveries(db, [{ ...due!, count: 64 }], { now, expire })
        }),
      )
      await releaseClaims(db, claims)
    }
    return times
  }
  await queue(db, owner, hooks, { count: 4_000 })
  await sql`vacuum analyze`.execute(db)
  await claim()
  const before = await claim()
  await sql`
    insert into delivery (webhook_history_id, organization_id, network_id, webhook_id,
      notification_type, data, sequence, create_time)
    select gen_random_uuid(), ${owner.organization_id}::uuid, ${owner.network_id}::int2,
      (${hooks}::uuid[])[1 + i % 20],
      'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED', jsonb_build_object('filler', repeat('x', 600)),
      1000000 + i, ${new Date(begin)}::timestamptz + i * interval '1 second'
    from generate_series(1, ${rows}::int) i`.execute(db)
  await sql`
    insert into delivery_attempt (webhook_id, sequence, attempt, organization_id, attempt_time,
      duration_ms, status_code)
    select webhook_id, sequence, 1, organization_id, create_time, 12, 204 from delivery
    where sequence > 1000000 order by sequence`.execute(db)
  // As autovacuum leaves it behind.
  await sql`vacuum analyze`.execute(db)
  await sql`checkpoint`.execute(db)
  await claim()
  const after = await claim()
  type Filter = Omit<Parameters<typeof listDeliveries>[2], 'limit' | 'now'>
  const anywhere = () => new Date(begin + Math.random() * span)
  const position = () => ({ create_time: anywhere(), webhook_history_id: hooks[0]! })
  const day = () => {
    const from_time = anywhere()
    return { from_time, to_time: new Date(from_time.getTime() + 86_400_000) }
  }
  const quiet = randomUUIDv7()
  const one = () => ({ webhook_id: hooks[Math.floor(Math.random() * hooks.length)]! })
  const asked: Record<string, () => Filter> = {
    'one webhook, first page': one,
    'one webhook, anywhere': () => ({ ...one(), after: position() }),
    'one webhook, a day': () => ({ ...one(), ...day() }),
    'one webhook, until a time': () => ({ ...one(), to_time: anywhere() }),
    'one webhook, since a time, anywhere after': () => ({
      ...one(),
      from_time: new Date(begin),
      after: position(),
    }),
    'a webhook without history': () => ({ webhook_id: quiet }),
    'all webhooks, first page': () => ({}),
    'all webhooks, anywhere': () => ({ after: position() }),
    'all webhooks, a day': day,
    'all webhooks, until a time': () => ({ to_time: anywhere() }),
    'all webhooks, since a time, anywhere after': () => ({
      from_time: new Date(begin),
      after: position(),
    }),
  }
  const list = (filter: Filter) =>
    listDeliveries(db, owner, { ...filter, limit: 101, now: new Date() })
  // The way to the database and back, and what else the machine does meanwhile.
  const bare: number[] = []
  const pages = Object.entries(asked).map(([name, filter]) => ({
    name,
    filter,
    times: [] as number[],
  }))
  // In turn, so that none of them has the quiet moments; the first rounds are warm-up.
  for (let round = -50; round < 500; round++) {
    const alone = await timed(() => sql`select 1`.execute(db))
    if (round >= 0) bare.push(alone)
    for (const { filter, times } of pages) {
      const wanted = filter()
      const time = await timed(() => list(wanted))
      if (round >= 0) times.push(time)
    }
  }
  await writeSection(
    'Webhook histories',
    command,
    `${number(rows)} rows of history of 20 webhooks with their attempts, vacuumed; pages of 100, 500 of each kind in turn; a claim of 64 before and after the history is there. Goals: page p99 5 ms, claims as fast as before. "select 1" is the way to the database and back.\n\n${table(
      ['', 'p50 ms', 'p99 ms'],
      [
        ...pages.map(({ name, times }) => [name, at(times, 0.5), at(times, 0.99)]),
        ['select 1', at(bare, 0.5), at(bare, 0.99)],
        ['claim, empty history', at(before, 0.5), at(before, 0.99)],
        ['claim, full history', at(after, 0.5), at(after, 0.99)],
      ],
    )}`,
  )
}
