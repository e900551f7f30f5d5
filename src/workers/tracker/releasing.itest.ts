import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { acquireLease } from '../../storage/tracking/leases.ts'
import { createMonths } from '../janitor/months.ts'
import { startReleasing } from './releasing.ts'
import { storeBeginning, storeBlocks } from './store.ts'

const { db, pool } = await freshDatabase()
const bench = await createWalletBench(db, 'c', { network: 'releasing', salt: 'releasing' })
const { chain, network_id, account, address } = bench
const lease = await acquireLease(db, { name: 'l', holder: randomUUIDv7(), ttl_ms: 3_600_000 })
const tools = {
  ...{ db, network_id, chain, window: 64, clock: systemClock },
  lease: { name: 'l', epoch: lease!.epoch },
}
await storeBeginning(tools, chain.canonical().at(-1)!)
const webhooks = 300

/** An organization with a wallet and many webhooks. */
const join = async (number: number): Promise<void> => {
  const { call, organization_id } = await bench.createCaller()
  await call('RegisterWallet', { name: 'w', confirmation: 1, address: address(number) })
  await pool.query(
    `insert into webhook (webhook_id, organization_id, network_id, webhook_endpoint, confirmation,
       webhook_state, secret_sealed, next_sequence, create_time, update_time)
     select gen_random_uuid(), $1, $2, 'https://example.org', 1, 'WEBHOOK_STATE_ENABLED', $3, 1,
       now(), now() from generate_series(1, $4)`,
    [organization_id, network_id, randomBytes(8), webhooks],
  )
}

const numbered = async (): Promise<number> => {
  const { rows } = await pool.query(
    'select count(*)::int4 from delivery where sequence is not null',
  )
  return rows[0].count
}

/** Pays some organizations and releases all that is notified of it. Returns the pauses between pages, in milliseconds. */
const payAndRelease = async (...numbers: number[]): Promise<number[]> => {
  const before = await numbered()
  const position = chain.canonical().at(-1)!
  chain.mine([{ movements: numbers.map((number) => ({ to: account(number), value: 7n })) }])
  const signal = new AbortController().signal
  const { value: event } = await chain.follow(position, signal)[Symbol.asyncIterator]().next()
  await createMonths(db)(event.blocks.map(({ time }: { time: number }) => time))
  await storeBlocks(tools, event.blocks)
  const pauses: number[] = []
  let time = 0
  const clock = {
    ...systemClock,
    // Every look at the clock is 10 ms later.
    now: () => (time += 10),
    sleep: async (ms: number, until: AbortSignal) => {
      // The one after everything is released is not between pages.
      if (ms === 5_000) return await systemClock.sleep(ms, until)
      pauses.push(ms)
    },
  }
  const releasing = startReleasing({ tools: { ...tools, clock }, log: silentLog, signal })
  onTestFinished(releasing.stop)
  await waitFor(
    'all is released',
    async () => (await numbered()) === before + numbers.length * webhooks,
  )
  await releasing.stop()
  return pauses
}

it('pages follow each other without pauses while one organization has the service for itself', async () => {
  await join(1)
  expect(await payAndRelease(1)).toEqual([])
})

it('where organizations share the service, one has small parts of pages and a fifth of the time', async () => {
  await join(2)
  const pauses = await payAndRelease(1)
  expect(pauses.length).toBeGreaterThanOrEqual(webhooks / 25)
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(4 * 10)
})

it('pages of five organizations follow each other without pauses', async () => {
  await join(3)
  await join(4)
  await join(5)
  expect(await payAndRelease(1, 2, 3, 4, 5)).toEqual([])
})
