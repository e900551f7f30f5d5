import { randomUUIDv7 } from 'node:crypto'
import { BlockGoneError, ChainUnavailableError } from '../../src/chains/chain.ts'
import type { WalletService } from '../../src/contract/variant.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { pageBalances } from '../../src/storage/balances/reconcile.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { findCursor, listBlocksBelow, trimBlocks } from '../../src/storage/tracking/blocks.ts'
import { hasUnreopened, listOpenGaps } from '../../src/storage/tracking/gaps.ts'
import { acquireLease } from '../../src/storage/tracking/leases.ts'
import { settleBalances } from '../../src/workers/balances/balances.ts'
import { reconcilePage } from '../../src/workers/balances/reconciling.ts'
import { createMonths } from '../../src/workers/janitor/months.ts'
import { HistoryMovedError } from '../../src/workers/tracker/history.ts'
import { createRefill } from '../../src/workers/tracker/refill.ts'
import { releasePage } from '../../src/workers/tracker/releasing.ts'
import { reopenLate } from '../../src/workers/tracker/reopening.ts'
import { findAncestor, rollBack } from '../../src/workers/tracker/reorg.ts'
import { planRewind, RewindError, runRewind } from '../../src/workers/tracker/rewind.ts'
import { storeBeginning, storeBlocks, storeGap } from '../../src/workers/tracker/store.ts'
import type { TrackerTools } from '../../src/workers/tracker/tools.ts'
import { CrashError, createFaultyDb } from './faulty-db.ts'
import { createChanges, type Registered, type WorldWallet } from './tracker-changes.ts'
import { createGrowth, createTokens } from './tracker-growth.ts'
import type { ReferenceWebhook, Snapshot } from './tracker-reference.ts'
import { type Caller, createWalletBench, type WalletBench } from './wallets.ts'

/** A scripted chain, two organizations, and a tracker that may die at any statement. */
export type World = Awaited<ReturnType<typeof createWorld>>

const never = new AbortController().signal
const none = Buffer.alloc(0)
const anHourLater = { ...systemClock, now: () => Date.now() + 3_600_000 }

/** Makes a world in which everything follows from the random numbers. */
export const createWorld = async (
  db: Db,
  {
    service,
    random,
    network,
    settles = 0.5,
  }: {
    service: WalletService
    random: () => number
    network: string
    /** The share of the steps before the head after which balances are read. With few, branches change between two readings. */
    settles?: number | undefined
  },
) => {
  const pick = (count: number) => Math.floor(random() * count)
  const chance = (share: number) => random() < share
  const bench: WalletBench = await createWalletBench(db, service, {
    network,
    batch: 1 + pick(5),
    salt: network,
  })
  const { chain, network_id } = bench
  const callers: Caller[] = [await bench.createCaller(), await bench.createCaller()]
  const faulty = createFaultyDb(db)
  const name = `tracker:${network}`
  const lease = await acquireLease(db, { name, holder: randomUUIDv7(), ttl_ms: 3_600_000 })
  const releaseLimits = {
    notifications: 1 + pick(9),
    transfers: 1 + pick(9),
    withBlock: pick(9),
  }
  const tools: TrackerTools = {
    db: faulty.db,
    clock: systemClock,
    network_id,
    chain,
    lease: { name, epoch: lease!.epoch },
    window: 64,
    // Mostly a few at once, so that what is due is released in several transactions.
    releaseLimits,
    // Mostly so few that notifications are written outside of the block's transaction.
    fanOutLimits: { inline: pick(4), perEvent: pick(3) },
    // Mostly less than is due at once.
    balanceRows: releaseLimits.notifications,
  }
  const ensureMonths = createMonths(db)

  const { tokens, hasRules } = createTokens(bench, service)
  const now: Registered = {
    addresses: new Map(),
    contracts: new Map(),
    rules: new Map(),
    webhooks: [],
  }
  const wallets: WorldWallet[] = []
  const processed = new Map<string, Snapshot>()
  /** Webhook, block and transaction, once the confirmation was reached. */
  const due: { webhook: ReferenceWebhook; block_number: number; block_hash: string }[] = []
  /** The head at which a registration was made: nothing before it was tracked. */
  const since = new Map<number, number>()
  const first = new Map<string, number>()
  let registrations = 0
  const nextRegistration = async () => {
    registrations++
    since.set(registrations, (await findCursor(db, network_id))?.block_number ?? 0)
    return registrations
  }
  /** Blocks that are in a gap, by hash; and at which head a block was refilled, by number. */
  const gapped = new Set<string>()
  const refilled = new Map<number, number>()
  /** Heads at which all balances were read that were due there, and which the tracker has not gone back behind. */
  let settled: number[] = []
  let gapEnd = 0
  /** Where the last rewind went. */
  let rewoundTo = 0
  /** Behind the last block that was not seen; or later, where not all was read again before a rewind. */
  let unseenEnd = 0
  /** The last head of the chain at which everything was read that was due, since the last block that was not seen. */
  let summedAt = -1
  let peak = 0
  let refills = 0
  let rewinds = 0
  let crashes = 0
  let repairs = 0
  const dice = { random, pick, chance }
  const moved = { service, tokens, hasRules }
  const { grow, rest, fork, comeBack, isSpoiled } = createGrowth(bench, moved, dice)
  const makeChange = createChanges(
    bench,
    { ...moved, db, callers, now, wallets, first, nextRegistration, run: () => run() },
    dice,
  )
  const change = async (): Promise<void> => {
    const depths = () =>
      wallets.map(({ confirmation, isRemoved }) => (isRemoved ? -1 : confirmation))
    const before = depths()
    await makeChange()
    const after = depths()
    // With fewer confirmations, what was not due when everything was read may be due now, and is read next.
    if (before.some((depth, at) => after[at]! < depth)) summedAt = -1
  }

  const snapshot = (): Snapshot => ({
    addresses: new Map(now.addresses),
    contracts: new Map(now.contracts),
    rules: new Map(now.rules),
    webhooks: now.webhooks.filter(({ isSilent }) => !isSilent),
  })

  /** Notes what the stored cursor says was stored since, and what it made due. */
  const noteProgress = async (before: number): Promise<void> => {
    const cursor = await findCursor(db, network_id)
    if (!cursor) return
    peak = Math.max(peak, cursor.block_number)
    // A rollback reads again what was read at the block before the removed ones.
    if (cursor.block_number < before)
      settled = settled.filter((number) => number < cursor.block_number)
    const gaps = await listOpenGaps(db, network_id)
    const isGap = (number: number) =>
      gaps.some(({ from_block, to_block }) => from_block <= number && number <= to_block)
    // A gap below the branches may have been filled although the cursor is on one that was left.
    for (const block of chain.canonical().slice(0, cursor.block_number + 1)) {
      const block_hash = block.hash.toString('hex')
      if (!gapped.has(block_hash) || isGap(block.number)) continue
      gapped.delete(block_hash)
      if (processed.has(block_hash)) continue
      processed.set(block_hash, snapshot())
      refilled.set(block.number, cursor.block_number)
      refills++
      // What was found is not read yet, also where the rest was read at this head.
      settled = settled.filter((number) => number < cursor.block_number)
    }
    // A gap that was found while balances were read again: all are read once more, from a later block on.
    if (await hasUnreopened(db, network_id)) {
      gapEnd = Math.max(gapEnd, cursor.block_number + 1)
      unseenEnd = Math.max(unseenEnd, cursor.block_number + 1)
      summedAt = -1
    }
    // Somewhere on a branch that was left: nothing was stored since.
    if (!cursor.block_hash.equals(chain.canonical()[cursor.block_number]?.hash ?? none)) return
    const stored = new Set(
      chain
        .canonical()
        .slice(0, cursor.block_number + 1)
        .map(({ hash }) => hash.toString('hex')),
    )
    for (const wallet of cursor.block_number < before ? wallets : []) {
      wallet.confirmed = Math.min(wallet.confirmed, cursor.block_number)
      wallet.imported = Math.min(wallet.imported, cursor.block_number)
    }
    // What was taken back is due again when its block is there again.
    for (let at = due.length - 1; at >= 0; at--)
      if (!stored.has(due[at]!.block_hash)) due.splice(at, 1)
    for (const block of chain.canonical().slice(before + 1, cursor.block_number + 1)) {
      const block_hash = block.hash.toString('hex')
      if (isGap(block.number)) {
        gapped.add(block_hash)
        processed.delete(block_hash)
        gapEnd = Math.max(gapEnd, block.number + 1)
        unseenEnd = Math.max(unseenEnd, block.number + 1)
        summedAt = -1
      } else processed.set(block_hash, snapshot())
    }
    for (const block of chain.canonical().slice(0, cursor.block_number + 1)) {
      const block_hash = block.hash.toString('hex')
      for (const webhook of processed.get(block_hash)?.webhooks ?? []) {
        const reached = block.number + Math.max(webhook.confirmation, 1) - 1
        const known = due.some((one) => one.webhook === webhook && one.block_hash === block_hash)
        if (reached <= cursor.block_number && !known)
          due.push({ webhook, block_number: block.number, block_hash })
      }
    }
  }

  /** One step of the tracker: begin, go back, or continue. False when there is nothing to do. */
  const step = async (): Promise<boolean> => {
    const blocks = chain.canonical()
    // As if the pause since the last walk through all balances was over.
    await reopenLate({ ...tools, clock: anHourLater })
    const cursor = await findCursor(tools.db, network_id)
    if (!cursor) {
      await storeBeginning(tools, blocks.at(-1)!)
      return true
    }
    const position = { number: cursor.block_number, hash: cursor.block_hash }
    const own = blocks[position.number]
    if (!own) return false
    if (chance(0.2)) await releasePage(tools, chance(0.5) ? { perOrganization: 1 + pick(4) } : {})
    if (!own.hash.equals(position.hash)) {
      const ancestor = await findAncestor(tools, never)
      if (!ancestor) return false
      await rollBack(tools, ancestor)
      return true
    }
    if (position.number === blocks.length - 1) return (await releasePage(tools)).isMore
    const next = blocks[position.number + 1]!
    if (isSpoiled(next.number)) {
      const to = { number: next.number, hash: next.hash }
      await storeGap(tools, position, { kind: 'gap', from: next.number, to, reason: 'unreadable' })
      return true
    }
    const event = (await chain.follow(position, never)[Symbol.asyncIterator]().next()).value
    if (event?.kind !== 'blocks') throw new Error(`unexpected ${event?.kind}`)
    await ensureMonths(event.blocks.map(({ time }: { time: number }) => time))
    // As far behind the head: what this head makes due waits in one row.
    const backlogUntil = chance(0.5) ? event.head : -1
    await storeBlocks(tools, event.blocks, { backlogUntil })
    return true
  }

  /** The most confirmations of a wallet whose balances are not read ahead. */
  const deepestShallow = (): number =>
    Math.max(
      1,
      ...wallets
        .filter(({ isRemoved, confirmation }) => !isRemoved && confirmation <= 32)
        .map(({ confirmation }) => confirmation),
    )

  /**
   * Whether the balances of shallow wallets were read again after the last gap, once its end had their confirmations; or those
   * of a wallet with that many confirmations.
   */
  const isReopened = (own = 1): boolean =>
    chain.canonical().length - 1 >= gapEnd + Math.max(own, deepestShallow()) - 1

  const reconcileAll = async () => {
    const { balances } = await pageBalances(db, network_id, { after: undefined, limit: 1_000 })
    return (await reconcilePage(tools, balances, never))?.differences ?? []
  }

  /** Runs the tracker until nothing is left to do, or for some steps; it dies and begins again. */
  const run = async ({
    steps = Number.POSITIVE_INFINITY,
    deadly = false,
    afterEach = async () => {},
  }: {
    steps?: number
    deadly?: boolean
    afterEach?(): Promise<void>
  } = {}): Promise<void> => {
    for (let left = steps; left > 0; left--) {
      if (deadly && chance(0.3)) faulty.arm(1 + pick(24))
      const before = (await findCursor(db, network_id))?.block_number
      let more = true
      let isAtHead = false
      try {
        more = await step()
        if (!more || chance(settles)) {
          while ((await settleBalances(tools, never)) > 0);
          settled.push((await findCursor(db, network_id))!.block_number)
          isAtHead = true
        }
      } catch (error) {
        // The chain may be ahead of the tracker: it reads again once it has gone back.
        if (!(error instanceof BlockGoneError || error instanceof CrashError)) throw error
        if (error instanceof CrashError) {
          crashes++
          // Balances may be left to settle, also at the head.
          more = true
        }
      } finally {
        faulty.disarm()
        await noteProgress(before ?? chain.canonical().length - 1)
      }
      await afterEach()
      if (!more) {
        // What follows by net changes is right already, or waits for a reading: there is nothing to repair.
        if (chain.balances === 'delta') repairs += (await reconcileAll()).length
        if (isAtHead) summedAt = chain.canonical().length - 1
        return
      }
    }
  }

  /** Lets unreadable blocks be read, and asks for the gaps again; the tracker may die meanwhile. */
  const refill = async ({ deadly = false } = {}): Promise<void> => {
    for (const number of chain.spoiled()) if (chance(0.8)) chain.spoil(number, 'whole')
    const refillGap = createRefill(tools, 1 + pick(4))
    for (const gap of await listOpenGaps(db, network_id)) {
      if (deadly && chance(0.3)) faulty.arm(1 + pick(12))
      const before = (await findCursor(db, network_id))!.block_number
      try {
        await refillGap(gap, never)
      } catch (error) {
        const isExpected =
          error instanceof CrashError ||
          error instanceof HistoryMovedError ||
          error instanceof ChainUnavailableError
        if (!isExpected) throw error
        if (error instanceof CrashError) crashes++
      } finally {
        faulty.disarm()
        await noteProgress(before)
      }
    }
  }

  /** Forgets the newest blocks but some, and goes back below them; the tracker may die meanwhile. */
  const rewind = async ({ deadly = false } = {}): Promise<void> => {
    const cursor = await findCursor(db, network_id)
    if (!cursor || cursor.block_number < 4) return
    const lowest = cursor.block_number - pick(Math.min(12, cursor.block_number - 2))
    // Not above the block at which the tracker's branch has begun: an operator has to choose such a one.
    const below = await listBlocksBelow(db, network_id, lowest, 64)
    const common = below.find(({ block_number, block_hash }) =>
      chain.canonical()[block_number]?.hash.equals(block_hash),
    )
    if (!common || common.block_number < 1) return
    const to = common.block_number - pick(Math.min(20, common.block_number))
    const before = new Date(Number.MAX_SAFE_INTEGER / 2 ** 10)
    await trimBlocks(db, network_id, { number: lowest, before, lowest })
    if (summedAt < unseenEnd + deepestShallow() - 1) unseenEnd = Math.max(unseenEnd, to)
    // Only those chains replace blocks. On the others the same ones are stored again.
    if (service === 'c') fork(to)
    if (deadly && chance(0.3)) faulty.arm(1 + pick(24))
    const options = { db: tools.db, clock: systemClock, network_id, chain, to, signal: never }
    try {
      await runRewind(options, await planRewind(options))
      rewinds++
      gapEnd = to
      rewoundTo = to
    } catch (error) {
      if (error instanceof CrashError) crashes++
      else if (!(error instanceof RewindError)) throw error
    } finally {
      faulty.disarm()
    }
    // Until it is done; another process may have died of it.
    if ((await findCursor(db, network_id))!.block_number > to) {
      const again = { ...options, db }
      await runRewind(again, await planRewind(again))
      rewinds++
      gapEnd = to
      rewoundTo = to
    }
    for (const block of chain.canonical().slice(to + 1)) {
      const block_hash = block.hash.toString('hex')
      gapped.delete(block_hash)
      processed.delete(block_hash)
    }
    await noteProgress(cursor.block_number)
  }

  return {
    refill,
    rewind,
    rewinds: () => rewinds,
    refilled,
    /** The first head from a block on at which all balances that were due were read. */
    settledFrom: (block: number): number =>
      Math.min(...settled.filter((number) => number >= block), Number.POSITIVE_INFINITY),
    /** The last head up to a block at which they were. */
    settledUntil: (block: number): number =>
      Math.max(...settled.filter((number) => number <= block), Number.NEGATIVE_INFINITY),
    /** The first block at which balances are read again after the last gap. */
    reopenedFrom: () => (gapEnd > 0 ? gapEnd + deepestShallow() - 1 : 0),
    gapEnd: () => gapEnd,
    rewoundTo: () => rewoundTo,
    /** Whether net changes add up to the balances of a wallet with that many confirmations, also after a rewind. */
    isSummed: (own: number, head: number): boolean =>
      summedAt >= unseenEnd + Math.max(own, deepestShallow()) - 1 &&
      // A net change of the block of the rewind is replaced by the reading, which waits for that block's confirmations.
      (own <= 32 || head >= gapEnd + own - 1),
    /** The highest block that the tracker was at. */
    peak: () => peak,
    isReopened,
    refills: () => refills,
    bench,
    callers,
    wallets,
    processed,
    due,
    now,
    snapshot,
    since,
    first,
    pick,
    chance,
    grow,
    rest,
    fork,
    comeBack,
    change,
    run,
    crashes: () => crashes,
    repairs: () => repairs,
  }
}
