import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { BlockGoneError, type BlockRef, ChainUnavailableError } from '../../src/chains/chain.ts'
import type { ScriptedTransaction } from '../../src/chains/testing/scripted-block.ts'
import type { AssetKey } from '../../src/contract/records/assets.ts'
import type { WalletService } from '../../src/contract/variant.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { findCursor } from '../../src/storage/tracking/blocks.ts'
import { listOpenGaps } from '../../src/storage/tracking/gaps.ts'
import { acquireLease } from '../../src/storage/tracking/leases.ts'
import { settleBalances } from '../../src/workers/balances/balances.ts'
import { reconcilePage } from '../../src/workers/balances/reconciling.ts'
import { createMonths } from '../../src/workers/janitor/months.ts'
import { HistoryMovedError } from '../../src/workers/tracker/history.ts'
import { createRefill } from '../../src/workers/tracker/refill.ts'
import { releasePage } from '../../src/workers/tracker/releasing.ts'
import { findAncestor, rollBack } from '../../src/workers/tracker/reorg.ts'
import { storeBeginning, storeBlocks, storeGap } from '../../src/workers/tracker/store.ts'
import type { TrackerTools } from '../../src/workers/tracker/tools.ts'
import { CrashError, createFaultyDb } from './faulty-db.ts'
import { own, type ReferenceWebhook, ruleOf, type Snapshot } from './tracker-reference.ts'
import { type Caller, createWalletBench, type WalletBench } from './wallets.ts'

/** A scripted chain, two organizations, and a tracker that may die at any statement. */
export type World = Awaited<ReturnType<typeof createWorld>>

const never = new AbortController().signal
const accounts = 7
const none = Buffer.alloc(0)

/** Makes a world in which everything follows from the random numbers. */
export const createWorld = async (
  db: Db,
  { service, random, network }: { service: WalletService; random: () => number; network: string },
) => {
  const pick = (count: number) => Math.floor(random() * count)
  const chance = (share: number) => random() < share
  const bench: WalletBench = await createWalletBench(db, service, {
    network,
    batch: 1 + pick(5),
    salt: network,
  })
  const { chain, network_id, account, address } = bench
  const callers: Caller[] = [await bench.createCaller(), await bench.createCaller()]
  const faulty = createFaultyDb(db)
  const name = `tracker:${network}`
  const lease = await acquireLease(db, { name, holder: randomUUIDv7(), ttl_ms: 3_600_000 })
  const tools: TrackerTools = {
    db: faulty.db,
    clock: systemClock,
    network_id,
    chain,
    lease: { name, epoch: lease!.epoch },
    window: 64,
    // Mostly a few at once, so that what is due is released in several transactions.
    releaseLimits: { notifications: 1 + pick(9), transfers: 1 + pick(9) },
    // Mostly so few that notifications are written outside of the block's transaction.
    fanOutLimits: { inline: pick(4), perEvent: pick(3) },
  }
  const ensureMonths = createMonths(db)

  const hasRules = service === 't' || service === 's'
  const ruled = (text: string): AssetKey => {
    const parsed = chain.parseToken!(text)
    if (!parsed.ok) throw new Error(parsed.detail)
    const asset_type = chain.native.asset_type
    return { asset_type, contract_address: parsed.bytes, token_id: 0n }
  }
  const ruledTexts =
    service === 's'
      ? ['0x5::coral::CORAL', '0x6::pearl::PEARL']
      : [`0:${'5'.repeat(64)}`, `0:${'6'.repeat(64)}`]
  const contractTokens: AssetKey[] = [
    { asset_type: 'ASSET_TYPE_ERC20', contract_address: account(71), token_id: 0n },
    { asset_type: 'ASSET_TYPE_ERC721', contract_address: account(72), token_id: 1n },
    { asset_type: 'ASSET_TYPE_ERC721', contract_address: account(72), token_id: 2n },
  ]
  const tokens = hasRules ? ruledTexts.map(ruled) : contractTokens
  for (const { asset_type, contract_address } of tokens)
    chain.addToken(contract_address, asset_type.replace('ASSET_', 'CONTRACT_'))

  const now = {
    addresses: new Map<string, { wallet_id: string; registration: number }>(),
    contracts: new Map<string, number>(),
    rules: new Map<string, number>(),
    webhooks: [] as ReferenceWebhook[],
  }
  const wallets: {
    wallet_id: string
    caller: Caller
    confirmation: number
    /** What had its confirmation before the number changed stays confirmed. */
    confirmed: number
    /** Its history stays. */
    isRemoved?: boolean
  }[] = []
  // Some ask for so many that they are read before they have them.
  const pickConfirmation = () => (service === 'c' && chance(0.2) ? 33 + pick(4) : pick(7))
  const processed = new Map<string, Snapshot>()
  /** Webhook, block and transaction, once the confirmation was reached. */
  const due: { webhook: ReferenceWebhook; block_number: number; block_hash: string }[] = []
  /** The head at which a registration was made: nothing before it was tracked. */
  const since = new Map<number, number>()
  let registrations = 0
  const nextRegistration = async () => {
    registrations++
    since.set(registrations, (await findCursor(db, network_id))?.block_number ?? 0)
    return registrations
  }
  /** Blocks that are in a gap, by hash; and at which head a block was refilled, by number. */
  const gapped = new Set<string>()
  const refilled = new Map<number, number>()
  let gapEnd = 0
  let refills = 0
  let crashes = 0
  let repairs = 0

  const randomTransaction = (): ScriptedTransaction => {
    const payer = account(pick(accounts))
    const kind = random()
    if (kind < 0.05) return { payer, fee: 1n }
    if (kind < 0.1) return { unknown_kind: 'other' }
    const failed = service === 'c' && kind < 0.2
    const movements = Array.from({ length: 1 + pick(3) }, () => {
      const isToken = (service === 'c' || hasRules) && !failed && chance(0.5)
      const to = account(pick(accounts))
      if (!isToken) return { from: payer, to, value: BigInt(pick(40)) }
      const asset = tokens[pick(tokens.length)]!
      // Tokens come from nowhere, so that no balance goes below zero.
      return { to, value: BigInt(1 + pick(9)), asset }
    })
    return { payer, fee: BigInt(pick(3)), failed, movements }
  }
  const randomBlock = (): ScriptedTransaction[] =>
    Array.from({ length: pick(4) }, randomTransaction)

  const canLack = service === 'c' || service === 's'
  const isSpoiled = (number: number): boolean => chain.spoiled().includes(number)
  const grow = () => {
    for (let left = 1 + pick(4); left > 0; left--) {
      const { number } = chain.mine(randomBlock())
      if (canLack && chance(0.08)) chain.spoil(number, 'unreadable')
    }
    // What was not seen of a gap is read at the first block after it.
    while (isSpoiled(chain.canonical().length - 1)) chain.mine(randomBlock())
  }
  /** The heads of branches that were left, which may come back. */
  const left: BlockRef[] = []
  const leave = () => {
    const { number, hash } = chain.canonical().at(-1)!
    left.push({ number, hash })
    if (left.length > 6) left.shift()
  }
  const fork = () => {
    const blocks = chain.canonical()
    const depth = Math.min(1 + pick(6), blocks.length - 1)
    leave()
    // Some transactions of the branch that is left stand on the new one too.
    const dropped = blocks.slice(-depth).flatMap(({ transactions }) => transactions)
    const branch = Array.from({ length: 1 + pick(8) }, randomBlock)
    for (const transaction of dropped)
      if (chance(0.3)) branch[pick(branch.length)]!.push({ ...transaction })
    chain.reorganize(depth, branch)
  }
  /** Goes back to a branch that was left, which may have grown meanwhile. */
  const comeBack = () => {
    const onChain = new Set(chain.canonical().map(({ hash }) => hash.toString('hex')))
    const others = left.filter(({ hash }) => !onChain.has(hash.toString('hex')))
    const head = others[pick(others.length)]
    if (!head) return
    leave()
    chain.resume(head)
    if (chance(0.5)) grow()
  }

  /** Tracks a token for a wallet or the organization, or no longer. */
  const changeRule = async (caller: Caller, wallet: string | undefined): Promise<void> => {
    const { organization_id } = caller
    const token = tokens[pick(tokens.length)]!
    const wallet_id = wallet !== undefined && chance(0.6) ? wallet : ''
    const rule = ruleOf(organization_id, wallet_id, token)
    const request = {
      ...(wallet_id && { wallet_id }),
      asset_type: token.asset_type,
      token_address: chain.formatToken!(token.contract_address),
    }
    if (!now.rules.has(rule)) {
      await caller.call('ImportAsset', request)
      now.rules.set(rule, await nextRegistration())
    } else if (chance(0.4)) {
      await caller.call('RemoveAsset', request)
      now.rules.delete(rule)
    }
  }

  const change = async (): Promise<void> => {
    const caller = callers[pick(2)]!
    const { organization_id } = caller
    const mine = wallets.filter((wallet) => wallet.caller === caller && !wallet.isRemoved)
    const wallet = mine[pick(mine.length)]
    const who = pick(accounts)
    const key = own(organization_id, account(who))
    const holder = now.addresses.get(key)
    const hasConfirmation = service === 'c' || service === 's'
    switch (pick(9)) {
      case 0: {
        if (mine.length >= 3) return
        const confirmation = hasConfirmation ? pickConfirmation() : 1
        const { wallet_id } = await caller.call('RegisterWallet', {
          name: 'w',
          ...(hasConfirmation && { confirmation }),
        })
        wallets.push({ wallet_id, caller, confirmation, confirmed: -1 })
        return
      }
      case 1:
      case 2: {
        if (!wallet || holder) return
        const { wallet_id } = wallet
        await caller.call('RegisterAddress', {
          wallet_id,
          address: address(who),
          ...(service !== 'c' && { import_asset: chance(0.5) }),
        })
        now.addresses.set(key, { wallet_id, registration: await nextRegistration() })
        return
      }
      case 3: {
        if (!holder || chance(0.5)) return
        await caller.call('RemoveAddress', { wallet_id: holder.wallet_id, address: address(who) })
        now.addresses.delete(key)
        return
      }
      case 4: {
        if (!wallet) return
        const asset_type =
          chance(0.5) || service !== 'c' ? chain.native.asset_type : 'ASSET_TYPE_ERC20'
        await caller.call('RefreshAssetBalances', { wallet_id: wallet.wallet_id, asset_type })
        return
      }
      case 5: {
        if (hasRules) return await changeRule(caller, wallet?.wallet_id)
        if (service !== 'c') return
        const { contract_address, asset_type } = tokens[pick(tokens.length)]!
        const request = { contract_address: chain.formatAddress(contract_address) }
        const contract = own(organization_id, contract_address)
        if (now.contracts.has(contract)) {
          if (chance(0.6)) return
          await caller.call('RemoveContract', request)
          now.contracts.delete(contract)
          return
        }
        const contract_type = asset_type.replace('ASSET_', 'CONTRACT_')
        await caller.call('RegisterContract', { ...request, contract_type })
        now.contracts.set(contract, await nextRegistration())
        return
      }
      case 6: {
        if (!wallet || chance(0.8)) return
        const { wallet_id } = wallet
        await caller.call('RemoveWallet', { wallet_id })
        wallet.isRemoved = true
        for (const [owned, { wallet_id: of }] of now.addresses)
          if (of === wallet_id) now.addresses.delete(owned)
        for (const rule of now.rules.keys())
          if (rule.split('/')[1] === wallet_id) now.rules.delete(rule)
        now.webhooks = now.webhooks.filter((webhook) => webhook.wallet_id !== wallet_id)
        return
      }
      case 7: {
        const own = now.webhooks.filter((webhook) => webhook.organization_id === organization_id)
        const webhook = own[pick(own.length)]
        if (!webhook) return
        const { webhook_id } = webhook
        if (service === 'c' && chance(0.5)) {
          // What was seen before is still sent, and so is what takes it back.
          webhook.isSilent = !webhook.isSilent
          const kind = webhook.isSilent ? 'TRANSACTION_STATE' : 'TRANSFER'
          await caller.call('UpdateWebhook', { webhook_id, events: [`WEBHOOK_EVENT_${kind}`] })
          return
        }
        // What waits for its confirmation waits for the new number; what had it must be sent before.
        await run()
        webhook.confirmation = pick(5)
        await caller.call('UpdateWebhook', { webhook_id, confirmation: webhook.confirmation })
        return
      }
      default: {
        if (wallet && hasConfirmation && chance(0.3)) {
          const head = (await findCursor(db, network_id))?.block_number ?? 0
          const { wallet_id } = wallet
          const confirmation = pickConfirmation()
          await caller.call('UpdateConfirmation', { wallet_id, confirmation })
          const reached = head - Math.max(wallet.confirmation, 1) + 1
          wallet.confirmed = Math.max(wallet.confirmed, reached)
          wallet.confirmation = confirmation
        } else if (now.webhooks.length < 4) {
          const webhook = {
            webhook_id: randomUUIDv7(),
            organization_id,
            wallet_id: chance(0.5) ? (wallet?.wallet_id ?? null) : null,
            confirmation: pick(5),
            isSilent: false,
          }
          const { isSilent: _, ...row } = webhook
          await db
            .insertInto('webhook')
            .values({
              ...row,
              network_id,
              webhook_endpoint: 'https://example.org',
              webhook_state: 'WEBHOOK_STATE_ENABLED',
              secret_sealed: randomBytes(4),
              next_sequence: 1,
              create_time: new Date(),
              update_time: new Date(),
            })
            .execute()
          now.webhooks.push(webhook)
        }
      }
    }
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
    }
    // Somewhere on a branch that was left: nothing was stored since.
    if (!cursor.block_hash.equals(chain.canonical()[cursor.block_number]?.hash ?? none)) return
    const stored = new Set(
      chain
        .canonical()
        .slice(0, cursor.block_number + 1)
        .map(({ hash }) => hash.toString('hex')),
    )
    for (const wallet of cursor.block_number < before ? wallets : [])
      wallet.confirmed = Math.min(wallet.confirmed, cursor.block_number)
    // What was taken back is due again when its block is there again.
    for (let at = due.length - 1; at >= 0; at--)
      if (!stored.has(due[at]!.block_hash)) due.splice(at, 1)
    for (const block of chain.canonical().slice(before + 1, cursor.block_number + 1)) {
      const block_hash = block.hash.toString('hex')
      if (isGap(block.number)) {
        gapped.add(block_hash)
        processed.delete(block_hash)
        gapEnd = Math.max(gapEnd, block.number + 1)
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
    const cursor = await findCursor(tools.db, network_id)
    if (!cursor) {
      await storeBeginning(tools, blocks.at(-1)!)
      return true
    }
    const position = { number: cursor.block_number, hash: cursor.block_hash }
    const own = blocks[position.number]
    if (!own) return false
    if (chance(0.2)) await releasePage(tools)
    if (!own.hash.equals(position.hash)) {
      const ancestor = await findAncestor(tools, never)
      if (!ancestor) return false
      await rollBack(tools, ancestor)
      return true
    }
    if (position.number === blocks.length - 1) return await releasePage(tools)
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

  /** Whether all balances were read again after the last gap, once its end had their confirmations. */
  const isReopened = (): boolean => {
    const shallow = wallets
      .filter(({ isRemoved, confirmation }) => !isRemoved && confirmation <= 32)
      .map(({ confirmation }) => confirmation)
    return chain.canonical().length - 1 >= gapEnd + Math.max(1, ...shallow) - 1
  }

  /** Runs the tracker until nothing is left to do, or for some steps; it dies and begins again. */
  const run = async ({ steps = Number.POSITIVE_INFINITY, deadly = false } = {}): Promise<void> => {
    for (let left = steps; left > 0; left--) {
      if (deadly && chance(0.3)) faulty.arm(1 + pick(24))
      const before = (await findCursor(db, network_id))?.block_number
      let more = true
      try {
        more = await step()
        if (!more || chance(0.5)) while ((await settleBalances(tools, never)) > 0);
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
      if (!more) {
        // What follows by net changes is right already, at any time: there is nothing to repair. Only after
        // a gap it is not until all balances were read again.
        if (chain.balances === 'delta' && isReopened())
          repairs += (await reconcilePage(tools, undefined, never)).differences.length
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

  return {
    refill,
    refilled,
    gapEnd: () => gapEnd,
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
    pick,
    chance,
    grow,
    fork,
    comeBack,
    change,
    run,
    crashes: () => crashes,
    repairs: () => repairs,
  }
}
