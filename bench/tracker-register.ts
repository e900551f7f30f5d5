import { createWalletBench } from '../test/helpers/wallets.ts'
import type { BenchDatabase } from './lib/bench-database.ts'

const batch = 1_000

/** Registers addresses by the thousand, four callers at once; seconds and growth of memory in MiB. */
export async function measureRegistration(
  { db }: BenchDatabase,
  addresses: number,
): Promise<{ seconds: number; growth: number }> {
  const bench = await createWalletBench(db, 'c')
  const caller = await bench.createCaller()
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'many' })
  let next = 0
  const work = async (until: number) => {
    while (next < until) {
      const from = next
      next += batch
      const some = Array.from({ length: batch }, (_, at) => bench.address(from + at))
      await caller.call('BatchRegisterAddresses', { wallet_id, addresses: some })
    }
  }
  const together = (until: number) => Promise.all(Array.from({ length: 4 }, () => work(until)))
  // What is allocated once is not growth.
  await together(20 * batch)
  const before = process.memoryUsage().rss
  const began = performance.now()
  await together(addresses)
  return {
    seconds: (performance.now() - began) / 1_000,
    growth: (process.memoryUsage().rss - before) / 2 ** 20,
  }
}
