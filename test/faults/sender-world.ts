import { randomUUIDv7 } from 'node:crypto'
import { privateKeyToAccount, sign } from 'viem/accounts'
import { toHex } from '../../src/chains/hex.ts'
import type { Handover } from '../../src/chains/sending.ts'
import type { ScriptedBlock, ScriptedTransaction } from '../../src/chains/testing/scripted-block.ts'
import { OperationError } from '../../src/contract/errors/errors.ts'
import { silentLog } from '../../src/lib/log.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { findCursor } from '../../src/storage/tracking/blocks.ts'
import { acquireLease } from '../../src/storage/tracking/leases.ts'
import { listDueBroadcasts } from '../../src/storage/transactions/open.ts'
import { createMonths } from '../../src/workers/janitor/months.ts'
import { checkTransaction } from '../../src/workers/sender/check-transaction.ts'
import { expireUnsigned } from '../../src/workers/sender/sender.ts'
import { releasePage } from '../../src/workers/tracker/releasing.ts'
import { findAncestor, rollBack } from '../../src/workers/tracker/reorg.ts'
import { storeBeginning, storeBlocks } from '../../src/workers/tracker/store.ts'
import { CrashError, createFaultyDb } from '../helpers/faulty-db.ts'
import { type Caller, createWalletBench } from '../helpers/wallets.ts'

const never = new AbortController().signal
/** After that long a transaction without a signature is canceled. */
const expiryMs = 600_000
const keys = [`0x${'11'.repeat(32)}`, `0x${'22'.repeat(32)}`] as const

/** Two organizations that share an address, their transactions, nodes that forget, and deaths. */
export type SenderWorld = Awaited<ReturnType<typeof createSenderWorld>>

/** Makes a world in which everything but the ids follows from the random numbers. */
export const createSenderWorld = async (
  db: Db,
  { random, network }: { random: () => number; network: string },
) => {
  const pick = (count: number) => Math.floor(random() * count)
  const chance = (share: number) => random() < share
  let time = 1_790_000_000_000
  const clock = { now: () => time, sleep: async () => {} }
  const faulty = createFaultyDb(db)
  const bench = await createWalletBench(faulty.db, 'c', { network, clock, salt: network, batch: 3 })
  const { chain, network_id } = bench
  const { sending } = chain
  const lease = { name: `tracker:${network}`, holder: randomUUIDv7(), ttl_ms: 3_600_000 }
  const { epoch } = (await acquireLease(db, lease))!
  const tools = {
    db: faulty.db,
    clock,
    network_id,
    chain,
    lease: { name: lease.name, epoch },
    window: 64,
    // So few that what a block confirms takes several pages.
    releaseLimits: { notifications: 2, transfers: 10, withBlock: 1 },
  }
  const senderTools = { db: faulty.db, clock, log: silentLog, network_id, sending }
  const ensureMonths = createMonths(db)
  const addresses = keys.map((key) => privateKeyToAccount(key).address.toLowerCase())
  const bytesOf = (address: string) => Buffer.from(address.slice(2), 'hex')
  const users: { caller: Caller; wallet_id: string; webhook_id: string; ids: string[] }[] = []
  for (let at = 0; at < 2; at++) {
    const caller = await bench.createCaller()
    const { wallet_id } = await caller.call('RegisterWallet', {
      name: 'w',
      address: addresses[0],
      confirmation: 1 + pick(3),
    })
    if (at === 0) await caller.call('RegisterAddress', { wallet_id, address: addresses[1] })
    const webhook_id = randomUUIDv7()
    await insertWebhook(db, { webhook_id, network_id, organization_id: caller.organization_id })
    users.push({ caller, wallet_id, webhook_id, ids: [] })
  }
  let crashes = 0
  /** Those whose nonce was asked for, by organization and id. */
  const explicitNonces = new Set<string>()

  /** Does something that may die at any statement; a refusal is an answer like any other. */
  const attempt = async (work: () => Promise<unknown>, { deadly = true } = {}): Promise<void> => {
    if (deadly && chance(0.25)) faulty.arm(1 + pick(14))
    try {
      await work()
    } catch (error) {
      if (error instanceof CrashError) crashes++
      else if (!(error instanceof OperationError)) throw error
    } finally {
      faulty.disarm()
    }
  }

  const answers = (): { handover: Handover | Error; isTaken: boolean }[] => {
    const isTaken = chance(0.5)
    const detail = 'scripted'
    if (chance(0.5)) return []
    return [
      [{ handover: { kind: 'unknown' as const, detail }, isTaken }],
      [{ handover: { kind: 'refused' as const, detail }, isTaken: false }],
      [{ handover: { kind: 'unsent' as const, detail }, isTaken: false }],
      [{ handover: { kind: 'accepted' as const }, isTaken }],
      [{ handover: new CrashError('killed at the socket'), isTaken }],
    ][pick(5)]!
  }

  const newRequest = async (index: number): Promise<object> => {
    const { caller, wallet_id, ids } = users[index]!
    const from = addresses[index === 0 ? pick(2) : 0]!
    const transaction_id = `t${ids.length}`
    ids.push(transaction_id)
    const isExplicit = chance(0.3)
    if (isExplicit) explicitNonces.add(`${caller.organization_id}/${transaction_id}`)
    const explicit = isExplicit && {
      nonce: pick(8) + (await sending.transactionCount(bytesOf(from), 'latest', never)),
    }
    // Of its own, or two organizations would sign the very same transaction.
    const value = `${1 + index}${ids.length}`
    return { wallet_id, from, to: from, value, transaction_id, ...explicit }
  }

  /** Many create at once while blocks are stored; what is random is drawn before. */
  const crowd = async (): Promise<void> => {
    const requests: [Caller, object][] = []
    for (let left = 2 + pick(5); left > 0; left--) {
      const index = pick(users.length)
      requests.push([users[index]!.caller, await newRequest(index)])
    }
    await Promise.all([
      track({ deadly: false }),
      ...requests.map(([caller, request]) =>
        attempt(() => caller.call('CreateTransaction', request), { deadly: false }),
      ),
    ])
  }

  /** An address has little for a while: new transactions are refused, signed ones at the nodes. */
  const impoverish = (): void => {
    const address = addresses[pick(addresses.length)]!
    if (chance(0.5)) sending.funds.delete(address)
    else sending.funds.set(address, BigInt(pick(30)) * 10n ** 12n)
  }

  const operate = async (): Promise<void> => {
    const { caller, ids } = users[pick(users.length)]!
    // Mostly the newest, so that some come to an end.
    const transaction_id = ids[Math.max(0, ids.length - 1 - pick(5))]
    const kind = random()
    if (kind < 0.22 || !transaction_id) {
      const request = await newRequest(users.findIndex((user) => user.ids === ids))
      await attempt(() => caller.call('CreateTransaction', request))
      if (chance(0.3)) await attempt(() => caller.call('CreateTransaction', request))
      return
    }
    if (kind < 0.55) {
      await attempt(async () => {
        const { transaction_message_to_sign: hash } = await caller.call(
          'GetTransactionMessageToSign',
          { transaction_id },
        )
        const { transaction } = await caller.call('GetTransaction', { transaction_id })
        const key = keys[addresses.indexOf(transaction.from)]!
        const signature = await sign({ hash, privateKey: key, to: 'hex' })
        await caller.call('SubmitTransactionSignature', { transaction_id, signature })
      })
      return
    }
    if (kind < 0.94) {
      sending.answers.push(...answers())
      await attempt(() => caller.call('SendTransaction', { transaction_id }))
      sending.answers.length = 0
      return
    }
    await attempt(() => caller.call('CancelTransaction', { transaction_id }))
  }

  /** What nodes drop by themselves: the pool holds nothing that a block has overtaken. */
  const cleanPool = async (): Promise<void> => {
    for (const [name, one] of sending.pool) {
      const count = await sending.transactionCount(one.from, 'latest', never)
      if (one.nonce < count || chance(0.05)) sending.pool.delete(name)
    }
  }
  const foreign = async (): Promise<ScriptedTransaction[]> => {
    const payer = bytesOf(addresses[pick(2)]!)
    const nonce = await sending.transactionCount(payer, 'latest', never)
    return [{ payer, nonce, fee: 1n }]
  }
  const taken = (): ScriptedTransaction[] =>
    sending.takeMinable().map((one) => (chance(0.15) ? { ...one, failed: true } : one))
  const grow = async (): Promise<void> => {
    for (let left = 1 + pick(3); left > 0; left--) {
      chain.mine(chance(0.15) ? await foreign() : chance(0.7) ? taken() : [])
      await cleanPool()
    }
  }
  /** The heads of branches that were left, which may come back. */
  const branches: ScriptedBlock[] = []
  const fork = async (): Promise<void> => {
    const blocks = chain.canonical()
    const depth = Math.min(1 + pick(4), blocks.length - 1)
    const length = depth + pick(2)
    branches.unshift(blocks.at(-1)!)
    branches.length = Math.min(branches.length, 4)
    chain.reorganize(
      depth,
      Array.from({ length }, () => []),
    )
    await drop(blocks.slice(-depth))
  }
  /** Goes back to a branch that was left before. */
  const comeBack = async (): Promise<void> => {
    const blocks = chain.canonical()
    const others = branches.filter((block) => !blocks.includes(block))
    const head = others[pick(others.length)]
    if (!head) return
    branches.unshift(blocks.at(-1)!)
    chain.resume(head)
    // Nodes follow the longer branch, and the tracker waits until there is one.
    while (chain.canonical().length <= blocks.length) chain.mine()
    await drop(blocks.filter((block) => !chain.canonical().includes(block)))
  }
  const drop = async (dropped: readonly ScriptedBlock[]): Promise<void> => {
    for (const { sent = [] } of chance(0.5) ? dropped : [])
      for (const { from, nonce, hash } of sent)
        sending.pool.set(`${toHex(from)}/${nonce}`, { from, nonce, hash: hash(), gas_price: 1n })
    await cleanPool()
  }
  /** Away and back: the very blocks that were dropped are on the chain again. */
  const bounce = async (): Promise<void> => {
    const head = chain.canonical().at(-1)!
    if (head.number === 0) return
    await fork()
    if (chance(0.7)) await track({ deadly: true })
    if (chance(0.5)) await sweep({ deadly: true })
    chain.resume(head)
    // Nodes follow the longer branch.
    while (chain.canonical().length < head.number + 3) chain.mine()
    await cleanPool()
  }

  const track = async ({ deadly }: { deadly: boolean }): Promise<void> => {
    for (let more = true; more; ) {
      more = false
      await attempt(
        async () => {
          more = await trackOnce()
        },
        { deadly },
      )
    }
  }
  const trackOnce = async (): Promise<boolean> => {
    const blocks = chain.canonical()
    const cursor = await findCursor(tools.db, network_id)
    if (!cursor) {
      await storeBeginning(tools, blocks.at(-1)!)
      return true
    }
    const position = { number: cursor.block_number, hash: cursor.block_hash }
    const own = blocks[position.number]
    if (!own) return false
    if (!own.hash.equals(position.hash)) {
      const ancestor = await findAncestor(tools, never)
      if (ancestor) await rollBack(tools, ancestor)
      return ancestor !== undefined
    }
    if (chance(0.2)) await releasePage(tools)
    if (position.number === blocks.length - 1) return (await releasePage(tools)).isMore
    const event = (await chain.follow(position, never)[Symbol.asyncIterator]().next()).value
    if (event?.kind !== 'blocks') throw new Error(`unexpected ${event?.kind}`)
    await ensureMonths(event.blocks.map((block: { time: number }) => block.time))
    await storeBlocks(tools, event.blocks)
    return true
  }

  const expire = async ({ deadly }: { deadly: boolean }): Promise<void> => {
    await attempt(() => expireUnsigned(senderTools, expiryMs, never), { deadly })
  }

  const sweep = async ({ deadly }: { deadly: boolean }): Promise<void> => {
    const due = await listDueBroadcasts(db, { network_id, now: new Date(time), limit: 100 })
    for (const row of due) {
      if (deadly) sending.answers.push(...answers())
      await attempt(() => checkTransaction(senderTools, row, never), { deadly })
      sending.answers.length = 0
    }
  }

  return {
    db,
    chain,
    network_id,
    users,
    explicitNonces,
    operate,
    crowd,
    impoverish,
    enrich: () => sending.funds.clear(),
    grow,
    fork,
    bounce,
    expire,
    comeBack,
    track,
    sweep,
    chance,
    pick,
    crashes: () => crashes,
    wait: (ms: number) => {
      time += ms
    },
  }
}

const insertWebhook = async (
  db: Db,
  webhook: { webhook_id: string; network_id: number; organization_id: string },
): Promise<void> => {
  await db
    .insertInto('webhook')
    .values({
      ...webhook,
      wallet_id: null,
      confirmation: 1,
      webhook_endpoint: 'https://example.org',
      webhook_state: 'WEBHOOK_STATE_ENABLED',
      secret_sealed: Buffer.alloc(4),
      next_sequence: 1,
      create_time: new Date(),
      update_time: new Date(),
    })
    .execute()
}
