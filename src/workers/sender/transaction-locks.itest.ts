import { randomUUIDv7 } from 'node:crypto'
import { sql } from 'kysely'
import { privateKeyToAccount, sign } from 'viem/accounts'
import { expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { type Caller, createWalletBench } from '../../../test/helpers/wallets.ts'
import { BlockGoneError, ChainUnavailableError } from '../../chains/chain.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import { systemClock } from '../../lib/clock.ts'
import { type Log, silentLog } from '../../lib/log.ts'
import { findCursor, lockCursor } from '../../storage/tracking/blocks.ts'
import { acquireLease } from '../../storage/tracking/leases.ts'
import { lockSender } from '../../storage/transactions/nonces.ts'
import { listDueBroadcasts } from '../../storage/transactions/open.ts'
import { settleBalances } from '../balances/balances.ts'
import { createMonths } from '../janitor/months.ts'
import { findAncestor, rollBack } from '../tracker/reorg.ts'
import { storeBeginning, storeBlocks } from '../tracker/store.ts'
import { checkTransaction } from './check-transaction.ts'

const { db } = await freshDatabase()
const bench = await createWalletBench(db, 'c', { endowment: 10n ** 24n })
const { chain, network_id } = bench
const { sending } = chain
const never = new AbortController().signal
const lease = { name: 'tracker:c:mainnet', holder: randomUUIDv7(), ttl_ms: 3_600_000 }
const { epoch } = (await acquireLease(db, lease))!
const tools = {
  ...{ db, clock: systemClock, network_id, chain, window: 64 },
  lease: { name: lease.name, epoch },
}
// The sender survives a deadlock and logs it.
const failures: string[] = []
const log: Log = { ...silentLog, warn: (fields) => failures.push(String(Object.values(fields)[0])) }
const senderTools = { db, clock: systemClock, log, network_id, sending }
const ensureMonths = createMonths(db)
await storeBeginning(tools, chain.canonical().at(-1)!)

const keys = [`0x${'11'.repeat(32)}`, `0x${'22'.repeat(32)}`] as const
const addresses = keys.map((key) => privateKeyToAccount(key).address.toLowerCase())
const pick = <T>(items: readonly T[]): T => items[Math.floor(Math.random() * items.length)]!

type User = Caller & { wallet_id: string; ids: string[] }
const createUser = async (): Promise<User> => {
  const caller = await bench.createCaller()
  const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', confirmation: 2 })
  await caller.call('BatchRegisterAddresses', { wallet_id, addresses })
  for (let at = 0; at < 2; at++)
    await caller.call('RegisterWebhook', {
      webhook_endpoint: 'https://receiver.invalid',
      confirmation: 1,
    })
  return { ...caller, wallet_id, ids: [] }
}
const create = async ({ call, wallet_id }: User, from = pick(addresses)): Promise<string> =>
  (await call('CreateTransaction', { wallet_id, from, to: from, value: '1' })).transaction
    .transaction_id
const signOne = async ({ call }: User, transaction_id: string): Promise<void> => {
  const { transaction } = await call('GetTransaction', { transaction_id })
  const { transaction_message_to_sign: hash } = await call('GetTransactionMessageToSign', {
    transaction_id,
  })
  const privateKey = keys[addresses.indexOf(transaction.from)]!
  const signature = await sign({ hash, privateKey, to: 'hex' })
  await call('SubmitTransactionSignature', { transaction_id, signature })
}

it('users create, sign, send and cancel while a block is being stored', async () => {
  const user = await createUser()
  await db.transaction().execute(async (trx) => {
    await lockCursor(trx, network_id)
    const [sent, canceled] = [await create(user), await create(user)]
    await signOne(user, sent)
    await user.call('SendTransaction', { transaction_id: sent })
    await user.call('CancelTransaction', { transaction_id: canceled })
  })
})

it('an organization does not wait for another one that creates for the same address', async () => {
  const [one, other] = [await createUser(), await createUser()]
  await db.transaction().execute(async (trx) => {
    const from = Buffer.from(addresses[0]!.slice(2), 'hex')
    await lockSender(trx, { organization_id: one.organization_id, network_id, from })
    await create(other, addresses[0])
  })
})

it('what tracker, sender, users and balances do at once never waits in a circle', async () => {
  const users = [await createUser(), await createUser(), await createUser()]
  const track = async (): Promise<void> => {
    const dice = Math.random()
    if (dice < 0.15 && chain.canonical().length > 4) chain.reorganize(2, [[], [], []])
    else chain.mine(dice < 0.8 ? sending.takeMinable() : [])
    for (;;) {
      const cursor = (await findCursor(db, network_id))!
      const at = { number: cursor.block_number, hash: cursor.block_hash }
      const own = chain.canonical()[at.number]
      if (own && !own.hash.equals(at.hash)) {
        const ancestor = await findAncestor(tools, never)
        if (ancestor) await rollBack(tools, ancestor)
        continue
      }
      if (at.number >= chain.canonical().length - 1) return
      const event = (await chain.follow(at, never)[Symbol.asyncIterator]().next()).value
      if (event?.kind !== 'blocks') throw new Error(`unexpected ${event?.kind}`)
      await ensureMonths(event.blocks.map((block: { time: number }) => block.time))
      await storeBlocks(tools, event.blocks)
    }
  }
  const refusedOr = async (work: Promise<unknown>): Promise<void> => {
    await work.catch((error: unknown) => {
      const isExpected =
        error instanceof OperationError ||
        error instanceof BlockGoneError ||
        error instanceof ChainUnavailableError
      if (!isExpected) throw error
    })
  }
  const operate = async (): Promise<void> => {
    const user = pick(users)
    const { call, wallet_id, ids } = user
    const transaction_id = ids.at(-1 - Math.floor(Math.random() * 6))
    const address = pick(addresses)
    const acts: (() => Promise<unknown>)[] = [
      async () => ids.push(await create(user)),
      async () => ids.push(await create(user)),
      async () => transaction_id && (await signOne(user, transaction_id)),
      async () => transaction_id && (await signOne(user, transaction_id)),
      async () => transaction_id && (await call('SendTransaction', { transaction_id })),
      async () => transaction_id && (await call('SendTransaction', { transaction_id })),
      async () => transaction_id && (await call('CancelTransaction', { transaction_id })),
      () => call('UpdateConfirmation', { wallet_id, confirmation: 1 + pick([0, 1, 2]) }),
      () => call('RefreshAssetBalances', { wallet_id }),
      async () => {
        await call('RemoveAddress', { wallet_id, address })
        await call('RegisterAddress', { wallet_id, address, import_asset: true })
      },
      async () => {
        const { webhooks } = await call('ListWebhooks', {})
        const { webhook_id } = pick<{ webhook_id: string }>(webhooks)
        await call('SendTestWebhook', { webhook_id })
      },
    ]
    await refusedOr(pick(acts)())
  }
  const sweep = async (): Promise<void> => {
    await sql`
      update managed_transaction set next_broadcast_time = now()
      where network_id = ${network_id} and next_broadcast_time is not null
        and random() < 0.5`.execute(db)
    const due = await listDueBroadcasts(db, { network_id, now: new Date(), limit: 20 })
    await Promise.all(due.map((row) => checkTransaction(senderTools, row, never)))
  }
  const settle = () => refusedOr(settleBalances(tools, never))
  const loop = async (count: number, act: () => Promise<unknown>) => {
    for (let turn = 0; turn < count; turn++) await act()
  }
  await Promise.all([
    loop(80, track),
    loop(40, sweep),
    loop(40, settle),
    ...Array.from({ length: 5 }, () => loop(120, operate)),
  ])
  expect(failures).toEqual([])
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from managed_transaction
    where transaction_state = 'TRANSACTION_STATE_CONFIRMED'`.execute(db)
  expect(rows[0]!.count).toBeGreaterThan(0)
}, 120_000)
