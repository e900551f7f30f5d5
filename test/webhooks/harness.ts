import { onTestFinished } from 'vitest'
import type { WalletService } from '../../src/contract/variant.ts'
import { systemIds } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import { createReachable } from '../../src/lib/net/reachable.ts'
import {
  type Courier,
  type CourierOptions,
  startCourier,
} from '../../src/workers/webhooks/courier.ts'
import {
  createGuardedFetch,
  type GuardedFetch,
  type GuardedFetchOptions,
} from '../../src/workers/webhooks/guarded-fetch.ts'
import type { FreshDatabase } from '../helpers/database.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { type Caller, createWalletBench, type WalletBench } from '../helpers/wallets.ts'
import { createFakeClock, type FakeClock } from './fake-clock.ts'

/** Webhooks of one service, and couriers that deliver to this machine. */
export type WebhookBench = {
  bench: WalletBench
  caller: Caller
  clock: FakeClock
  register(webhook_endpoint: string, fields?: object): Promise<string>
  /** Queues a test notification and gives its id. */
  test(webhook_id: string): Promise<string>
  startCourier(
    options?: Partial<CourierOptions>,
    http?: Partial<GuardedFetchOptions> & { timeoutOf?: (url: string) => number | undefined },
  ): Courier
  /** Waits until nothing is claimed, under way or due. */
  settled(courier: Courier): Promise<void>
  /** Lets time pass, attempt by attempt. */
  pass(courier: Courier, ms: number): Promise<void>
  attempts(webhook_history_id: string): Promise<
    {
      at: number
      status_code: number | null
      error: string
      response_body: string
      duration_ms: number
    }[]
  >
  history(webhook_history_id: string): Promise<{ webhook_status: string; delivery_count: number }>
}

/** Makes a bench on a database; its clock is stopped unless another is given. */
export const createWebhookBench = async (
  database: FreshDatabase,
  service: WalletService = 'c',
  clock: FakeClock = createFakeClock(),
): Promise<WebhookBench> => {
  const { db, pool } = database
  const begun = clock.now()
  const bench = await createWalletBench(db, service, {
    clock,
    network: `net-${systemIds.bytes(6).toString('hex')}`,
  })
  const endpoints = { allowHttp: true, reachable: createReachable(['127.0.0.0/8']) }
  bench.installation.endpoints = endpoints
  const caller = await bench.createCaller()

  const settled = async (courier: Courier) => {
    await waitFor(
      'the courier has nothing to do',
      async () => {
        courier.wake()
        const { claimed, unrecorded } = courier.status()
        if (claimed > 0 || unrecorded > 0) return false
        const { rows } = await pool.query(
          `select 1 from delivery_queue q join webhook w using (webhook_id)
           where w.network_id = $1 and (q.next_attempt_time <= $2
             or q.next_attempt_time is not null and w.webhook_state = 'WEBHOOK_STATE_DISABLED')
           limit 1`,
          [bench.network_id, new Date(clock.now())],
        )
        if (rows.length === 0) return courier.status().claimed === 0
        // A receiver that fails is left alone for up to a second, and only time can end that.
        const wake = clock.nextWake() ?? Number.POSITIVE_INFINITY
        if (wake - clock.now() <= 1_000) await clock.moveTo(wake)
        return false
      },
      { timeoutMs: 60_000 },
    )
  }

  const nextDue = async (): Promise<number | undefined> => {
    const { rows } = await pool.query(
      `select min(next_attempt_time) as at from delivery_queue
       join delivery using (webhook_history_id) where network_id = $1`,
      [bench.network_id],
    )
    return rows[0].at?.getTime()
  }

  return {
    bench,
    caller,
    clock,
    settled,
    register: async (webhook_endpoint, fields = {}) =>
      (await caller.call('RegisterWebhook', { webhook_endpoint, confirmation: 1, ...fields }))
        .webhook_id,
    test: async (webhook_id) =>
      (await caller.call('SendTestWebhook', { webhook_id })).webhook_history_id,
    startCourier: (options = {}, { timeoutOf, ...http } = {}) => {
      const client = createGuardedFetch({ ...endpoints, ...http })
      const timed: GuardedFetch = {
        ...client,
        request: (request) =>
          client.request({
            ...request,
            timeoutMs: timeoutOf?.(request.url) ?? request.timeoutMs,
          }),
      }
      const courier = startCourier({
        db,
        clock,
        ids: systemIds,
        sealer: bench.installation.sealer,
        log: silentLog,
        http: timed,
        timeoutMs: 15_000,
        limits: { perReceiver: 16, total: 1_000 },
        ...options,
      })
      onTestFinished(async () => {
        await courier.stop()
        await client.stop()
      })
      return courier
    },
    pass: async (courier, ms) => {
      const end = clock.now() + ms
      for (;;) {
        await settled(courier)
        const due = await nextDue()
        if (due === undefined || due > end) break
        await clock.moveTo(due)
      }
      await clock.moveTo(end)
    },
    attempts: async (webhook_history_id) => {
      const { webhook_attempts } = await caller.call('ListWebhookAttempts', { webhook_history_id })
      return webhook_attempts.map(({ attempt_time, ...attempt }: { attempt_time: string }) => ({
        ...attempt,
        at: (Date.parse(attempt_time) - begun) / 1000,
      }))
    },
    history: async (webhook_history_id) => {
      const { rows } = await pool.query(
        `select coalesce(q.webhook_status, 'WEBHOOK_STATUS_COMPLETED') as webhook_status,
           (select count(*)::int4 from delivery_attempt a
             where a.webhook_id = d.webhook_id and a.sequence = d.sequence) as delivery_count
         from delivery d left join delivery_queue q using (webhook_history_id)
         where d.webhook_history_id = $1`,
        [webhook_history_id],
      )
      return rows[0]
    },
  }
}
