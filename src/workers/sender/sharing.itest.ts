import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { privateKeyToAccount, sign } from 'viem/accounts'
import { expect, it, onTestFinished } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import { createWalletBench } from '../../../test/helpers/wallets.ts'
import type { Sending } from '../../chains/sending.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { listDueBroadcasts, listDueOfEach } from '../../storage/transactions/open.ts'
import { claimAddresses } from '../../storage/transactions/sending-claims.ts'
import type { TransactionRow } from '../../storage/transactions/transactions.ts'
import { startLeased } from '../lease.ts'
import { checkTransaction } from './check-transaction.ts'
import { startSender } from './sender.ts'

const { db } = await freshDatabase()
const bench = await createWalletBench(db, 'c', { endowment: 10n ** 24n })
const { chain, network_id } = bench
const keys = Array.from(
  { length: 40 },
  (_, at) => `0x${(at + 1).toString(16).padStart(64, '0')}` as const,
)
const owners = new Map<string, string>()
const addresses = keys.map((key) => privateKeyToAccount(key).address.toLowerCase())

const { call, organization_id } = await bench.createCaller()
const { wallet_id } = await call('RegisterWallet', { name: 'w', confirmation: 2 })
await call('BatchRegisterAddresses', { wallet_id, addresses })
for (const [at, from] of addresses.entries()) {
  const made = await call('CreateTransaction', { wallet_id, from, to: from, value: '1' })
  const { transaction_id } = made.transaction
  const { transaction_message_to_sign: hash } = await call('GetTransactionMessageToSign', {
    transaction_id,
  })
  const signature = await sign({ hash, privateKey: keys[at]!, to: 'hex' })
  await call('SubmitTransactionSignature', { transaction_id, signature })
  const { transaction } = await call('SendTransaction', { transaction_id })
  owners.set(transaction.transaction_hash.slice(2), from)
}

const makeDue = () =>
  sql`update managed_transaction set next_broadcast_time = now() - interval '1 second'`.execute(db)
const countDue = async () => {
  const { rows } = await sql`
    select from managed_transaction where next_broadcast_time <= now()`.execute(db)
  return rows.length
}

type Look = (name: string, address: string) => Promise<void>
const sent: string[] = []

/** The chain as a sender of that name uses it. */
const watched = (name: string, look: Look): Sending => ({
  ...chain.sending,
  findBlockOf: async (hash, signal) => {
    await look(name, owners.get(hash.toString('hex'))!)
    return await chain.sending.findBlockOf(hash, signal)
  },
  broadcast: async (raw, hash) => {
    sent.push(owners.get(hash.toString('hex'))!)
    return await chain.sending.broadcast(raw, hash)
  },
})

/** A sender that reports what it checks. */
const start = (name: string, look: Look) => {
  const sending = watched(name, look)
  const sender = startSender({
    ...{ db, clock: systemClock, log: silentLog, holder: randomUUID(), network_id, pollMs: 20 },
    name: { chain: 'c', network: 'mainnet' },
    chain: { ...chain, sending },
  })
  onTestFinished(sender.stop)
  return sender
}

/** A sender of the version before: it knows no claims, and one with the lease checks all that is due on the network. */
const startOlder = (name: string, look: Look) => {
  const tools = { db, clock: systemClock, log: silentLog, network_id }
  const older = startLeased({
    ...{ db, clock: systemClock, log: silentLog, holder: randomUUID(), name: 'sender:c:mainnet' },
    run: async (_, signal, works) => {
      while (!signal.aborted) {
        const due = await listDueBroadcasts(db, { network_id, now: new Date(), limit: 100 })
        const check = (row: TransactionRow) =>
          checkTransaction({ ...tools, sending: watched(name, look) }, row, signal)
        await Promise.all(due.map(check))
        works()
        await systemClock.sleep(20, signal).catch(() => {})
      }
    },
  })
  onTestFinished(older.stop)
  return older
}

it('two senders share what is due, and an address is never with both', async () => {
  await makeDue()
  const both = Promise.withResolvers<void>()
  const began = new Set<string>()
  const busy = new Map<string, string>()
  const checked = new Map<string, Set<string>>()
  const overlaps: string[] = []
  const look = async (name: string, address: string) => {
    const other = busy.get(address)
    if (other !== undefined && other !== name) overlaps.push(address)
    busy.set(address, name)
    checked.set(name, (checked.get(name) ?? new Set()).add(address))
    began.add(name)
    if (began.size === 2) both.resolve()
    // Each continues only when both work at the same time.
    await both.promise
    busy.delete(address)
  }
  start('one', look)
  start('two', look)
  await waitFor('nothing is due', async () => (await countDue()) === 0)
  const [one, two] = [checked.get('one')!, checked.get('two')!]
  expect(new Set([...one, ...two]).size).toBe(addresses.length)
  expect([one.size, two.size].every((size) => size >= 4)).toBe(true)
  expect(overlaps).toEqual([])
})

it('what a killed sender claimed is continued by another one within 5 seconds', async () => {
  await makeDue()
  const all = addresses.map((address) => Buffer.from(address.slice(2), 'hex'))
  const killed = { network_id, holder: randomUUID(), ttl_ms: 3_000 }
  expect(await claimAddresses(db, killed, all)).toHaveLength(all.length)
  const begun = performance.now()
  const seen = new Map<string, number>()
  start('next', async (_, address) => void seen.set(address, performance.now() - begun))
  await waitFor('nothing is due', async () => (await countDue()) === 0)
  expect(seen.size).toBe(all.length)
  const firstMs = Math.min(...seen.values())
  expect(firstMs).toBeGreaterThan(1_000)
  expect(firstMs).toBeLessThan(5_000)
})

it('during an upgrade a sender of the version before checks the same addresses, and each is broadcast once', async () => {
  await makeDue()
  sent.length = 0
  const both = Promise.withResolvers<void>()
  const began = new Set<string>()
  const checked: string[] = []
  const look = async (name: string, address: string) => {
    checked.push(address)
    began.add(name)
    if (began.size === 2) both.resolve()
    // Both have listed what is due before one of them sends.
    await both.promise
  }
  const older = startOlder('older', look)
  const newer = start('newer', look)
  await waitFor('nothing is due', async () => (await countDue()) === 0)
  // An attempt is written before it is sent: the last ones may not have reached the node yet.
  await Promise.all([older.stop(), newer.stop()])
  // Some were with both at the same time.
  expect(checked.length).toBeGreaterThan(addresses.length)
  expect(sent.toSorted()).toEqual(addresses.toSorted())
})

it('many due transactions of one organization do not delay the one of another', async () => {
  await makeDue()
  const other = await bench.createCaller()
  const theirs = await other.call('RegisterWallet', { name: 'w', confirmation: 2 })
  const from = addresses[0]!
  await sql`
    insert into managed_transaction
    select (jsonb_populate_record(m, jsonb_build_object(
      'organization_id', ${other.organization_id}::text, 'wallet_id', ${theirs.wallet_id}::text,
      'transaction_id', gen_random_uuid(), 'next_broadcast_time', now() - interval '2 seconds',
      'nonce', n))).*
    from managed_transaction m, generate_series(1, 500) n
    where m."from" = ${Buffer.from(from.slice(2), 'hex')}`.execute(db)
  const oldest = await listDueBroadcasts(db, { network_id, now: new Date(), limit: 100 })
  expect(new Set(oldest.map(({ organization_id }) => organization_id))).toEqual(
    new Set([other.organization_id]),
  )
  const page = { network_id, now: new Date(), limit: 100 }
  // The one after `after` has the first turn, and the last one is followed by the first.
  const [first, second] = [...new Set([organization_id, other.organization_id])].sort()
  for (const [after, begins] of [
    ['00000000-0000-0000-0000-000000000000', first],
    [first, second],
    [second, first],
  ]) {
    const shares = await listDueOfEach(db, { ...page, after: after! })
    expect(shares[0]!.organization_id).toBe(begins)
    const counts = Map.groupBy(shares, (row) => row.organization_id)
    expect([...counts.values()].map((rows) => rows.length)).toEqual([25, 25])
  }
  const checked: string[] = []
  start('only', async (_, address) => void checked.push(address))
  await waitFor('the others are checked', () => new Set(checked).size === addresses.length)
  // 25 of the busy organization had their turn in each of three rounds.
  expect(checked.filter((address) => address === from).length).toBeLessThan(200)
})
