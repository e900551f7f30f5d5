// A process of `bench/transactions.ts` that creates transactions, as a worker of the service does beside the tracker.
import { randomUUIDv7 } from 'node:crypto'
import { CreateTransaction } from '../src/domain/transactions/create.ts'
import { systemClock } from '../src/lib/clock.ts'
import { silentLog } from '../src/lib/log.ts'
import type { EmbeddedConnection } from '../src/storage/embedded/layout.ts'
import { openDatabase } from '../src/storage/pg/database.ts'
import { createWalletBench } from '../test/helpers/wallets.ts'

/** What a process creates. */
export type LoadOptions = {
  connection: EmbeddedConnection
  /** The number of its first account; those of other processes are others. */
  first: number
  tenants: number
  addressesEach: number
  /** Creations a second of each tenant. */
  rate: number
  /** Requests that a client of a tenant has open at most. */
  openEach: number
}

/** What it did until it was stopped. */
export type LoadResult = { created: number; cpuMs: number }

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

async function run(options: LoadOptions): Promise<void> {
  const { connection, first, tenants, addressesEach, rate, openEach } = options
  const database = openDatabase({ connection, log: silentLog })
  const bench = await createWalletBench(database.db, 'c', { endowment: 10n ** 24n })
  const users = await Promise.all(
    Array.from({ length: tenants }, async (_, tenant) => {
      const caller = await bench.createCaller()
      const addresses = Array.from({ length: addressesEach }, (_, at) =>
        bench.address(first + tenant * addressesEach + at),
      )
      const { wallet_id } = await caller.call('RegisterWallet', { name: 'w' })
      await caller.call('BatchRegisterAddresses', { wallet_id, addresses })
      await caller.call('RegisterWebhook', {
        webhook_endpoint: 'https://receiver.invalid',
        confirmation: 1,
      })
      return { ...caller, wallet_id, addresses }
    }),
  )

  const { signal } = new AbortController()
  let created = 0
  let isOver = false
  const runTenant = async (user: (typeof users)[number]): Promise<void> => {
    const { organization_id, wallet_id, addresses } = user
    const context = {
      ...bench.installation,
      principal: { credential_id: randomUUIDv7(), organization_id, role: 'ROLE_MEMBER' as const },
      ...{ service: 'c' as const, chain: 'c', operation: 'CreateTransaction', signal },
    }
    const running = new Set<Promise<unknown>>()
    const began = performance.now()
    for (let count = 0; !isOver; count++) {
      const from = addresses[count % addresses.length]!
      const request = { wallet_id, from, to: from, value: '1' }
      // The handler itself: the checks around it are measured by bench/operations.ts.
      const one = CreateTransaction(context, request)
        .then(() => created++)
        .finally(() => running.delete(one))
      running.add(one)
      // At the rate of arrival however slow the answers are, up to what a client would have open.
      if (running.size >= openEach) await Promise.race(running)
      const wait = began + ((count + 1) * 1_000) / rate - performance.now()
      if (wait > 0) await systemClock.sleep(wait)
    }
    await Promise.all(running)
  }

  const asked = async () => await new Promise((resolve) => process.once('message', resolve))
  process.send?.('ready')
  await asked()
  const cpuBefore = cpuMs()
  const load = users.map(runTenant)
  await asked()
  process.send?.({ created, cpuMs: cpuMs() - cpuBefore } satisfies LoadResult)
  isOver = true
  await Promise.all(load)
  await bench.chain.stop()
  await database.stop()
  process.disconnect?.()
}

if (import.meta.main) await run(JSON.parse(process.argv[2]!) as LoadOptions)
