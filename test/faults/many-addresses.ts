import { randomUUIDv7 } from 'node:crypto'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { findCursor } from '../../src/storage/tracking/blocks.ts'
import { startTracker } from '../../src/workers/tracker/tracker.ts'
import { startKillableDatabase } from '../helpers/killable-database.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { type Caller, createWalletBench } from '../helpers/wallets.ts'

const batch = 1_000
const patience = { timeoutMs: 120_000 }

/** What it took. */
export type ManyOutcome = { addresses: number; seconds: number; growth_mib: number }

/**
 * Two organizations register many addresses while the chain continues, the last one both; a payment in
 * the very next block is in the lists of both, each in its own wallet alone.
 */
export const runManyAddresses = async (db: Db, addresses: number): Promise<ManyOutcome> => {
  const network = `many-${randomUUIDv7()}`
  const bench = await createWalletBench(db, 'c', { network })
  const { chain, network_id, account, address } = bench
  const tracker = startTracker({
    db,
    clock: systemClock,
    log: silentLog,
    holder: randomUUIDv7(),
    name: { chain: 'c', network },
    network_id,
    chain,
  })
  const join = async () => {
    const caller = await bench.createCaller()
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'many', confirmation: 1 })
    return { caller, wallet_id: wallet_id as string }
  }
  try {
    await waitFor('tracking begins', async () => !!(await findCursor(db, network_id)), patience)
    const members = [await join(), await join()] as const
    const values = async ({ caller, wallet_id }: { caller: Caller; wallet_id: string }) => {
      const { transfers } = await caller.call('ListTransfers', { wallet_id, page_size: 100 })
      return transfers.map(({ value }: { value: string }) => value)
    }
    let next = 0
    const register = async ({ caller, wallet_id }: (typeof members)[number]) => {
      while (next < addresses - 1) {
        const from = next
        next += batch
        const count = Math.min(batch, addresses - 1 - from)
        const some = Array.from({ length: count }, (_, at) => address(from + at))
        await caller.call('BatchRegisterAddresses', { wallet_id, addresses: some })
        // Each member is paid at its newest address while the other one continues.
        chain.mine([{ movements: [{ to: account(from + count - 1), value: 1n }] }])
      }
    }
    const [began, memory] = [performance.now(), process.memoryUsage().heapUsed]
    await Promise.all([...members, ...members].map(register))
    const seconds = (performance.now() - began) / 1_000
    globalThis.gc?.()
    const growth_mib = (process.memoryUsage().heapUsed - memory) / 2 ** 20

    const last = { address: address(addresses - 1) }
    chain.mine()
    for (const { caller, wallet_id } of members)
      await caller.call('RegisterAddress', { wallet_id, ...last })
    chain.mine([{ movements: [{ to: account(addresses - 1), value: 777n }] }])
    for (const member of members)
      await waitFor(
        'the payment to the last one is listed',
        async () => (await values(member))[0] === '777',
        patience,
      )
    const batches = Math.ceil((addresses - 1) / batch)
    const listed = await Promise.all(
      members.map(async ({ caller, wallet_id }) => {
        let count = 0
        let page_token = ''
        do {
          const request = { wallet_id, page_size: 100, ...(page_token && { page_token }) }
          const { transfers, pagination } = await caller.call('ListTransfers', request)
          count += transfers.length
          page_token = pagination.next_page_token
        } while (page_token)
        return count
      }),
    )
    if (listed[0]! + listed[1]! !== batches + 2)
      throw new Error(`${batches + 2} payments, listed ${listed.join(' and ')}`)
    for (const [at, { caller, wallet_id }] of members.entries()) {
      const other = members[1 - at]!
      const { wallet } = await caller.call('GetWallet', last)
      if (wallet.wallet_id !== wallet_id) throw new Error('the wallet of another organization')
      const reason = await caller.reason('ListTransfers', { wallet_id: other.wallet_id })
      if (reason !== 'WALLET_NOT_FOUND') throw new Error(`the other wallet answers ${reason}`)
    }
    return { addresses, seconds, growth_mib }
  } finally {
    await tracker.stop()
  }
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { addresses: { type: 'string', default: '1000000' } } })
  const database = await startKillableDatabase()
  try {
    console.log(await runManyAddresses(database.db, Number(values.addresses)))
  } finally {
    await database.stop()
  }
}
