import type { Pair } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'
import type { Account, Caller, Outcome } from './cluster-load.ts'
import type { World } from './cluster-world.ts'

/** Every acknowledged write is there, every payment once, sequences have no gap, balances equal the chain's. */
export async function check(
  { anvil, received: all }: World,
  call: Caller,
  {
    member,
    accounts,
    outcome,
    path,
  }: { member: Pair; accounts: Account[]; outcome: Outcome; path: string },
): Promise<void> {
  const mine = () => all.filter((one) => one.path === path)
  const expected = accounts.reduce((sum, { payments }) => sum + payments.size, 0)
  const notified = () => new Set(mine().map(({ hash }) => hash)).size
  await waitFor('all payments are notified', () => notified() >= expected, {
    timeoutMs: 180_000,
    everyMs: 500,
  }).catch((error: Error) => outcome.wrong.push(`${error.message}: ${notified()} of ${expected}`))
  for (const { wallet_id, address, payments } of accounts) {
    const wallet = await call(member, 'c/GetWallet', { wallet_id })
    if (!wallet) outcome.lost.push(wallet_id)
    const seen: { transaction_hash: string; value: string }[] = []
    for (let page_token = ''; ; ) {
      const page = await call(member, 'c/ListTransfers', {
        ...{ wallet_id, page_size: 100 },
        ...(page_token && { page_token }),
      })
      seen.push(...(page?.transfers ?? []))
      page_token = page?.pagination?.next_page_token ?? ''
      if (!page_token) break
    }
    const counted = Map.groupBy(seen, ({ transaction_hash }) => transaction_hash)
    for (const [hash, value] of payments) {
      const records = counted.get(hash) ?? []
      if (records.length !== 1 || records[0]!.value !== `${value}`)
        outcome.wrong.push(`payment ${hash} of ${value} is listed ${records.length} times`)
    }
    if (counted.size !== payments.size)
      outcome.wrong.push(`${address} has ${counted.size} payments instead of ${payments.size}`)
    const balance = BigInt(await anvil.call<string>('eth_getBalance', [address, 'latest']))
    const isEqual = async () => {
      const { assets = [] } =
        (await call(member, 'c/ListAssets', {
          ...{ wallet_id, asset_type: 'ASSET_TYPE_C' },
        })) ?? {}
      const found = assets.find((one: { asset_type: string }) => one.asset_type === 'ASSET_TYPE_C')
      return BigInt(found?.balance ?? 0) === balance
    }
    await waitFor('the balance is that of the chain', isEqual, { everyMs: 500 }).catch(() =>
      outcome.wrong.push(`the balance of ${address} is not ${balance}`),
    )
  }
  const received = mine()
  const sequences = [...new Set(received.map(({ sequence }) => sequence))].sort((a, b) => a - b)
  sequences.forEach((sequence, index) => {
    if (sequence !== index + 1) outcome.wrong.push(`sequence ${index + 1} is missing`)
  })
  const ids = Map.groupBy(received, ({ id }) => id)
  for (const [id, copies] of ids)
    if (new Set(copies.map(({ sequence }) => sequence)).size > 1)
      outcome.wrong.push(`${id} has two numbers`)
  outcome.counts.notifications! += ids.size
  outcome.counts.repeated! += received.length - ids.size
}
