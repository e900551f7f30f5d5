import { execFile } from 'node:child_process'
import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { promisify } from 'node:util'
import { privateKeyToAccount, sign } from 'viem/accounts'
import type { Connection, Db } from '../../src/storage/pg/database.ts'
import { bundledProgram } from '../helpers/bundle.ts'
import { startKillableDatabase } from '../helpers/killable-database.ts'
import { startSendingBench } from '../transactions/harness.ts'
import { readNumbers } from './program.ts'
import type { Deed } from './sender-kill-child.ts'

/** What a campaign came to: how many kills, and in which state each left the transaction. */
export type KillOutcome = { kills: number; points: number; left: Record<string, number> }

const hourMs = 3_600_000
const run = promisify(execFile)

/**
 * Kills a process with SIGKILL at points of SendTransaction, and of the sender that repeats it: before
 * and after every statement, and around the handing over. Whatever is left, once the service continues
 * there must be exactly one transaction on the chain, and its state must say so.
 */
export async function runSenderKills(
  { db, connection }: { db: Db; connection: Connection },
  { points, onKill = () => {} }: { points: number; onKill?(text: string): void },
): Promise<KillOutcome> {
  await using stack = new AsyncDisposableStack()
  const bench = await startSendingBench(db)
  stack.defer(bench.stop)
  const { anvil, caller, network_id, clock, mine, get, reaches } = bench
  const { organization_id } = caller
  await insertWebhook(db, { network_id, organization_id })
  const left: Record<string, number> = {}
  let ahead = 0

  const prepare = async () => {
    const key = `0x${randomBytes(32).toString('hex')}` as const
    const from = privateKeyToAccount(key).address.toLowerCase()
    await anvil.call('anvil_setBalance', [from, '0xde0b6b3a7640000'])
    const { wallet_id } = await caller.call('RegisterWallet', {
      name: 'w',
      address: from,
      confirmation: 1,
    })
    const { transaction } = await caller.call('CreateTransaction', {
      ...{ wallet_id, from, to: from, value: '1' },
      ...{ gas: '21000', gas_price: '5000000000' },
    })
    const { transaction_id } = transaction
    const message = await caller.call('GetTransactionMessageToSign', { transaction_id })
    const signature = await sign({
      hash: message.transaction_message_to_sign,
      privateKey: key,
      to: 'hex',
    })
    await caller.call('SubmitTransactionSignature', { transaction_id, signature })
    return { from, transaction_id }
  }
  /** Undefined when it was killed. */
  const act = async (
    work: Deed['work'],
    transaction_id: string,
    point = 0,
  ): Promise<number | undefined> => {
    const deed: Deed = {
      ...{ work, connection, url: anvil.url, network_id, organization_id, transaction_id },
      // So late that the sender of the bench leaves it alone until the clock is moved.
      ...{ ahead: ahead + hourMs, point },
    }
    try {
      const child = await bundledProgram('test/faults/sender-kill-child.ts')
      return Number((await run(process.execPath, [child, JSON.stringify(deed)])).stdout)
    } catch (error) {
      if ((error as { signal?: string }).signal === 'SIGKILL') return undefined
      throw error
    }
  }
  /** Lets the service continue, and holds the end against the chain. */
  const finish = async (from: string, transaction_id: string): Promise<void> => {
    const before = await get(transaction_id)
    const state = before.transaction_state.replace('TRANSACTION_STATE_', '')
    left[state] = (left[state] ?? 0) + 1
    // The caller got no answer, and repeats; what is on its way is answered as it stands.
    await caller.call('SendTransaction', { transaction_id })
    clock.shift(2 * hourMs)
    ahead += 2 * hourMs
    await reaches(transaction_id, 'SENT')
    await mine()
    const { transaction_hash } = await reaches(transaction_id, 'CONFIRMED')
    const count = Number(await anvil.call('eth_getTransactionCount', [from, 'latest']))
    const receipt = await anvil.call<{ from: string } | null>('eth_getTransactionReceipt', [
      transaction_hash,
    ])
    if (count !== 1 || receipt?.from !== from || transaction_hash !== before.transaction_hash)
      throw new Error(`${state}: ${count} transactions on the chain, receipt ${receipt?.from}`)
  }

  const whole = await prepare()
  const sendPoints = (await act('send', whole.transaction_id))!
  await finish(whole.from, whole.transaction_id)
  const again = await prepare()
  await act('send', again.transaction_id, unknownPoint(sendPoints))
  const checkPoints = (await act('check', again.transaction_id))!
  await finish(again.from, again.transaction_id)

  const all = [
    ...Array.from({ length: sendPoints }, (_, at) => ['send', at + 1] as const),
    ...Array.from({ length: checkPoints }, (_, at) => ['check', at + 1] as const),
  ]
  let kills = 0
  const chosen = Array.from(
    { length: Math.min(points, all.length) },
    (_, at) => all[Math.floor((at * all.length) / Math.min(points, all.length))]!,
  )
  for (const [work, point] of chosen) {
    const { from, transaction_id } = await prepare()
    if (work === 'check') await act('send', transaction_id, unknownPoint(sendPoints))
    const survived = await act(work, transaction_id, point)
    if (survived !== undefined) throw new Error(`${work} ${point}: was not killed`)
    kills++
    onKill(`${work} ${point}: ${(await get(transaction_id)).transaction_state}`)
    await finish(from, transaction_id)
  }
  return { kills, points: all.length, left }
}

/** In the middle of handing over: written ahead, and nothing known of what came of it. */
const unknownPoint = (sendPoints: number): number => Math.ceil(sendPoints / 2)

const insertWebhook = async (
  db: Db,
  { network_id, organization_id }: { network_id: number; organization_id: string },
): Promise<void> => {
  const now = new Date()
  await db
    .insertInto('webhook')
    .values({
      ...{ webhook_id: randomUUIDv7(), network_id, organization_id, wallet_id: null },
      ...{ confirmation: 1, webhook_endpoint: 'https://example.org' },
      ...{ webhook_state: 'WEBHOOK_STATE_ENABLED', secret_sealed: Buffer.alloc(4) },
      ...{ next_sequence: 1, create_time: now, update_time: now },
    })
    .execute()
}

if (import.meta.main) {
  const { points } = readNumbers({ points: 60 })
  const database = await startKillableDatabase()
  try {
    const outcome = await runSenderKills(database, { points, onKill: (text) => console.log(text) })
    console.log('exactly one transaction on the chain after every kill:', outcome)
  } finally {
    await database.stop()
  }
}
