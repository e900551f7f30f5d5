import type { Pair } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'
import {
  type Account,
  accepts,
  type Caller,
  type Made,
  type Outcome,
  word,
} from './cluster-load.ts'
import type { World } from './cluster-world.ts'

/** Every acknowledged write is there, every payment once, sequences have no gap, balances equal the chain's. */
export async function check(
  { anvil, token, received: all }: World,
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
    const question = { to: token, data: `0x70a08231${word(address)}` }
    const balances = {
      ASSET_TYPE_C: await anvil.call<string>('eth_getBalance', [address, 'latest']),
      ASSET_TYPE_ERC20: await anvil.call<string>('eth_call', [question, 'latest']),
    }
    for (const [asset_type, hex] of Object.entries(balances)) {
      const balance = BigInt(hex)
      const isEqual = async () => {
        const { assets = [] } =
          (await call(member, 'c/ListAssets', { wallet_id, asset_type })) ?? {}
        const found = assets.find((one: { asset_type: string }) => one.asset_type === asset_type)
        return BigInt(found?.balance ?? 0) === balance
      }
      await waitFor('the balance is that of the chain', isEqual, { everyMs: 500 }).catch(() =>
        outcome.wrong.push(`the balance of ${address} (${asset_type}) is not ${balance}`),
      )
    }
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

/** What was made is there, and what was removed is gone: webhooks in the list, keys at every process. */
export async function checkMade(
  { members }: World,
  call: Caller,
  { member, made, outcome }: { member: Pair; made: Made; outcome: Outcome },
): Promise<void> {
  const listed = new Set<string>()
  for (let page_token = ''; ; ) {
    const page = await call(member, 'c/ListWebhooks', {
      ...{ page_size: 100, ...(page_token && { page_token }) },
    })
    for (const { webhook_id } of page?.webhooks ?? []) listed.add(webhook_id)
    page_token = page?.pagination?.next_page_token ?? ''
    if (!page_token) break
  }
  for (const [webhook_id, isThere] of made.webhooks)
    if (listed.has(webhook_id) !== isThere)
      outcome.lost.push(`webhook ${webhook_id} is ${isThere ? 'missing' : 'still there'}`)
  const serving = members.filter(({ role }) => role === 'api' || role === 'gateway')
  for (const { pair, isKept } of made.keys)
    for (const one of serving) {
      // A process that has just connected again may refuse once; a deleted key is accepted by none, ever.
      const isRight = async () => (await accepts(one, pair)) === isKept
      if (isKept)
        await waitFor('the key is accepted', isRight, { timeoutMs: 10_000, everyMs: 200 }).catch(
          () => outcome.lost.push(`key ${pair.api_key} at ${one.name}`),
        )
      else if (!(await isRight())) outcome.wrong.push(`${one.name} accepts a deleted key`)
    }
}
