import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { type Anvil, startAnvil } from '../../devnet/anvil/anvil.ts'
import { createEvmChain } from '../../src/chains/evm/chain.ts'
import { createPool } from '../../src/chains/evm/pool/pool.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { isReopening } from '../../src/storage/balances/reopening.ts'
import type { Connection, Db } from '../../src/storage/pg/database.ts'
import { findCursor } from '../../src/storage/tracking/blocks.ts'
import { hasUnreopened, listOpenGaps } from '../../src/storage/tracking/gaps.ts'
import { findTraced } from '../../src/storage/tracking/networks.ts'
import { loudCode, loudKinds, silentCodes } from '../chains/evm/hostile-contracts.ts'
import { createSender, encode } from '../chains/evm/token-contracts.ts'
import { isBalanceDue } from '../helpers/balance-due.ts'
import { bundledProgram } from '../helpers/bundle.ts'
import { startKillableDatabase } from '../helpers/killable-database.ts'
import { oneChain } from '../helpers/one-chain.ts'
import { createRandom } from '../helpers/random.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { createWalletBench } from '../helpers/wallets.ts'
import { rememberBranch, restoreBranch } from './evm-branches.ts'
import { compareWallet, countCorrections, isAllShown, type WorldWallet } from './evm-compare.ts'
import { createReference, type Effect } from './evm-reference.ts'
import { createTraffic } from './evm-traffic.ts'
import { leavesAnother, type NodeFault, nodeFaults } from './node-faults.ts'
import { startOrderlyNode } from './orderly-node.ts'
import { readNumbers } from './program.ts'
import type { TrackerProcess } from './tracker-process.ts'

/** Where it happens. */
export type EvmContext = {
  db: Db
  connection: Connection
  /** Mines on command, in the order of arrival (`worldAnvil`). */
  anvil: Anvil
  /** Kills the database, which comes back by itself. */
  killDatabase(): Promise<void>
}

/** Starts an anvil for worlds. */
export const startWorldAnvil = (): Promise<Anvil> =>
  startAnvil({ args: ['--no-mining', '--order', 'fifo'] })

const counts = [
  'compared',
  'balances',
  'transfers',
  'sums',
  'notifications',
  'kills',
  'sleeps',
  'database_kills',
  'reorgs',
  'returns',
  'outages',
  'gaps',
] as const

/** What one run came to. */
export type EvmOutcome = Record<(typeof counts)[number], number>

const nothing = (): EvmOutcome => Object.fromEntries(counts.map((name) => [name, 0])) as EvmOutcome

const ttlMs = 1_500
// More than a full node keeps states for here, and more than balances are read again for.
const deep = 34
const keptStates = 24

/**
 * Makes blocks of all kinds of transfers on anvil, forks them at any moment and returns to branches that
 * were left, lets the nodes fail in all their ways, kills the tracker's process or the database or puts
 * the process to sleep for longer than its lease, and compares every list and the last notification of
 * every transfer with what the blocks say and every balance with the chain's own.
 */
export const runEvmWorld = async (
  { db, connection, anvil, killDatabase }: EvmContext,
  { seed, steps, deadly }: { seed: number; steps: number; deadly: boolean },
): Promise<EvmOutcome> => {
  const random = createRandom(seed)
  const pick = (count: number) => Math.floor(random() * count)
  const { send, deploy } = createSender(anvil)
  const accounts = (await anvil.call<string[]>('eth_accounts')).map((one) => one.toLowerCase())
  const tracked = accounts.slice(1, 5)
  const [rich] = accounts as [string]
  const coin = await deploy('Coin', rich)
  const item = await deploy('Item', rich)
  const multi = await deploy('Multi', rich)
  const relay = await deploy('Relay', rich)
  const addressOf = (number: number) =>
    `0x${(0x5eed00000000 + seed * 256 + number).toString(16).padStart(40, '0')}`
  const [loud, ledger, rebasing] = [addressOf(1), addressOf(2), addressOf(3)]
  for (const one of [loud, ledger, rebasing])
    await anvil.call('anvil_setCode', [one, silentCodes.ledger])
  await anvil.call('evm_mine')
  const network = `evm-${seed}-${Date.now()}`
  const bench = await createWalletBench(db, 'c', { network })
  const { network_id } = bench
  const plans = new Map<string, Effect[]>()
  const reference = createReference(anvil, plans)
  const outcome = nothing()
  const node = await startOrderlyNode(anvil)
  // In every third world balances change silently, and are compared with the chain all the time.
  const isReconciled = seed % 3 === 0

  const pool = createPool({
    network,
    prefix: 'eth',
    upstreams: [{ url: node.url }],
    clock: systemClock,
    log: silentLog,
  })
  const chain = createEvmChain({ pool })
  bench.installation.chains = oneChain(network_id, () => chain, network)
  const wallet = async (
    confirmation: number,
    mine: string[],
    contracts: string[],
  ): Promise<WorldWallet> => {
    const caller = await bench.createCaller()
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', confirmation })
    await caller.call('BatchRegisterAddresses', { wallet_id, addresses: mine })
    for (const contract_address of contracts) {
      const kind = { [item]: 'ERC721', [multi]: 'ERC1155' }[contract_address] ?? 'ERC20'
      const contract_type = `CONTRACT_TYPE_${kind}`
      await caller.call('RegisterContract', { contract_address, contract_type })
    }
    const waits = 1 + pick(4)
    const { webhook_id } = await caller.call('RegisterWebhook', {
      webhook_endpoint: 'https://example.org/hooks',
      confirmation: waits,
    })
    const collections = new Set([item, multi])
    const tracking = {
      ...{ addresses: new Set(mine), contracts: new Set(contracts), collections, confirmation },
    }
    return { caller, wallet_id, tracking, webhook: { webhook_id, confirmation: waits } }
  }
  const silent = isReconciled ? [ledger, rebasing] : []
  // Organizations have addresses in common, and not the same contracts.
  const shallow = [
    await wallet(1, tracked.slice(0, 2), [coin, item, multi, ...silent]),
    await wallet(3, tracked.slice(1, 4), [coin, loud]),
  ]
  const wallets = [...shallow, await wallet(deep, tracked.slice(2, 4), [coin, multi])]
  // Once they are registered: these answer what no decimals can be.
  await anvil.call('anvil_setCode', [loud, loudCode(loudKinds[seed % loudKinds.length]!)])
  await anvil.call('anvil_setCode', [rebasing, silentCodes.rebasing])
  await anvil.call('evm_mine')
  node.keepStates(keptStates)

  const processes = new Set<ChildProcess>()
  const program = await bundledProgram('test/faults/tracker-process.ts')
  const startProcess = () => {
    const options: TrackerProcess = {
      ...{ connection, network_id, network, ttlMs, isReconciled },
      urls: [node.url, node.plainUrl],
      // In half of them the node that traces is asked first as long as it is there.
      isOrdered: seed % 2 === 0,
      // In half of them balance work waits in backlogs whenever the tracker is behind at all.
      ...(seed % 2 === 0 && { farBehind: 0 }),
    }
    const child = spawn(process.execPath, [program, JSON.stringify(options)], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    processes.add(child)
    child.once('exit', () => processes.delete(child))
    return child
  }
  const kill = async (child: ChildProcess) => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  let running = startProcess()
  const trackedBlock = async () => (await findCursor(db, network_id))?.block_number
  await waitFor('tracking begins', async () => (await trackedBlock()) !== undefined, longWait)
  const since = (await trackedBlock())! + 1

  let disturbances = 0
  const nextTransaction = createTraffic(
    { coin, item, multi, relay, loud, ledger },
    accounts,
    pick,
    { oversized: seed % 4 === 1 ? 1 : 0 },
  )
  const grow = async (blocks: number): Promise<void> => {
    for (let left = blocks; left > 0; left--) {
      for (let count = pick(9); count > 0; count--) {
        const { transaction, effects } = nextTransaction()
        plans.set(await send(transaction), effects)
      }
      await node.alone(() => anvil.call('evm_mine'))
    }
  }
  const fork = async (): Promise<void> => {
    const room = (await reference.head()) - since
    const depth = Math.min(1 + pick(4), room)
    if (depth < 1) return
    const payment = () => ({
      from: accounts[pick(6)],
      to: accounts[pick(6)],
      value: `0x${(1 + pick(5_000)).toString(16)}`,
    })
    const branch = Array.from({ length: depth }, (_, at) => [payment(), at])
    const left = await rememberBranch(anvil, depth)
    await node.alone(() => anvil.call('anvil_reorg', [depth, branch]))
    outcome.reorgs++
    // Back to the branch that was left, before or after the tracker has seen the other one.
    for (let turns = pick(3); turns > 0; turns--) {
      if (random() < 0.6) await delay(pick(1_200))
      const other = await rememberBranch(anvil, depth)
      if (await node.alone(() => restoreBranch(anvil, depth, left))) outcome.returns++
      if (turns === 1) break
      await delay(pick(600))
      if (await node.alone(() => restoreBranch(anvil, depth, other))) outcome.returns++
    }
    // Enough that no balance waits for a block that lost its confirmations.
    for (let left = 0; left < 3; left++) await node.alone(() => anvil.call('evm_mine'))
  }
  /** Kills the database or the process, or lets that sleep until another one has taken over. */
  const disturb = async (): Promise<void> => {
    await delay(pick(400))
    // In turn, so that the first two are the deaths of the process and of the database.
    const turn = disturbances++ % 4
    if (turn === 1) {
      outcome.database_kills++
      return await killDatabase()
    }
    const old = running
    if (turn !== 2) {
      outcome.kills++
      await kill(old)
    } else {
      outcome.sleeps++
      old.kill('SIGSTOP')
      setTimeout(() => old.kill('SIGCONT'), ttlMs * 2)
    }
    running = startProcess()
    if (processes.size > 3)
      for (const one of processes) if (one !== running && one !== old) await kill(one)
  }

  /** Lets the nodes fail, and takes the time in which a tracker may give up. */
  const fail = async (): Promise<NodeFault> => {
    outcome.outages++
    const fault = nodeFaults[pick(nodeFaults.length)]!
    node.fail(fault)
    await delay(pick(1_000))
    return fault
  }
  const recover = async (): Promise<void> => {
    await delay(pick(4_000))
    if (random() < 0.5) await grow(1)
    node.fail(undefined)
  }

  const settled = async (): Promise<void> => {
    const { hash, number } = await anvil.call<{ hash: string; number: string }>(
      'eth_getBlockByNumber',
      ['latest', false],
    )
    await waitFor(
      `seed ${seed}: the tracker is at the head`,
      async () => (await findCursor(db, network_id))?.block_hash.toString('hex') === hash.slice(2),
      longWait,
    )
    await waitFor(
      `seed ${seed}: no gap is open`,
      () => areGapsFilled(db, network_id),
      longWait,
    ).catch(async (error: unknown) => {
      const cause = await listOpenGaps(db, network_id)
      throw new Error(`seed ${seed}: gaps stay open: ${JSON.stringify(cause)}`, { cause: error })
    })
    await waitFor(
      `seed ${seed}: balances are to be read again because of gaps`,
      async () => {
        // As if time went by: balances are not read again because of every gap.
        await sql`update network set reopen_time = reopen_time - interval '1 hour'
          where network_id = ${network_id}`.execute(db)
        return (await isReopening(db, network_id)) || !(await hasUnreopened(db, network_id))
      },
      longWait,
    )
    await waitFor(
      `seed ${seed}: no balance is due`,
      async () => !(await isBalanceDue(db, network_id, Number(number))),
      longWait,
    )
  }
  const setup = {
    ...{ db, anvil, reference, since },
    silent: new Set(silent),
    unreadable: new Set([loud]),
    isReconciled,
  }
  const compare = async (some: readonly WorldWallet[]): Promise<void> => {
    await settled()
    // Balances are read again once the gap has confirmations. The comparison with the chain waits for it, and a deep wallet
    // shows what was read then after as many blocks. Further gaps wait for that, and need another one.
    const isReadAgain = async () =>
      (await isReopening(db, network_id)) || (await hasUnreopened(db, network_id))
    for (let left = 6; left > 0 && (await isReadAgain()); left--) {
      await node.alone(() => anvil.call('evm_mine'))
      await settled()
    }
    for (const one of wallets) {
      const withBalances = some.includes(one)
      const found = await compareWallet(setup, one, { withBalances }).catch((error: unknown) => {
        throw new Error(`seed ${seed}, confirmation ${one.tracking.confirmation}`, { cause: error })
      })
      for (const key of Object.keys(found) as (keyof typeof found)[]) outcome[key] += found[key]
      outcome.compared++
    }
  }

  try {
    // A network that was never traced is not expected to be.
    plans.set(await send({ from: rich, to: relay, data: encode('pass', tracked[0]!) }), [])
    await node.alone(() => anvil.call('evm_mine'))
    await waitFor('a block is traced', () => findTraced(db, network_id), longWait)
    if (isReconciled) {
      for (let left = 0; left < 3; left++) await node.alone(() => anvil.call('evm_mine'))
      // What was there before the registration is found too; only what follows may hide a mistake.
      await waitFor('all that was there', () => isAllShown(setup, shallow), longWait)
      await sql`delete from balance_difference where network_id = ${network_id}`.execute(db)
    }
    for (let step = 0; step < steps; step++) {
      const isFailing = random() < 0.6
      const fault = isFailing ? await fail() : undefined
      const disturbing = deadly && (step < 2 || random() < 0.6) ? disturb() : undefined
      await grow(1 + pick(4))
      if (random() < 0.5) await fork()
      await disturbing
      // Where another node has everything, everything is there before the node is well again.
      if (leavesAnother(fault)) await compare(shallow)
      if (isFailing) await recover()
      await compare(shallow)
    }
    // Until the newest change has the confirmations of the deep wallet.
    await node.alone(() => anvil.call('anvil_mine', [`0x${(deep + 2).toString(16)}`]))
    await compare(wallets)
    outcome.gaps = await countGaps(db, network_id)
    const corrections = isReconciled ? await countCorrections(setup, network_id) : 0
    if (corrections > 0 && outcome.gaps === 0)
      throw new Error(`seed ${seed}: ${corrections} balances were wrong until they were compared`)
    return outcome
  } finally {
    for (const child of processes) await kill(child)
    await pool.stop()
    await node.stop()
  }
}

const longWait = { timeoutMs: 120_000, everyMs: 50 }

/** Whether there is no gap; those that there are, are due at once. */
const areGapsFilled = async (db: Db, network_id: number): Promise<boolean> => {
  await sql`
    update tracker_gap set next_time = least(next_time, now())
    where network_id = ${network_id} and close_time is null`.execute(db)
  // In a statement of its own: the one above does not see a row that replaced another while it waited for its lock.
  return (await listOpenGaps(db, network_id)).length === 0
}

const countGaps = async (db: Db, network_id: number): Promise<number> => {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int4 as count from tracker_gap where network_id = ${network_id}`.execute(db)
  return rows[0]!.count
}

if (import.meta.main) {
  const { seed: first, seeds, steps } = readNumbers({ seeds: 20, seed: 1, steps: 8 })
  const database = await startKillableDatabase()
  const total = nothing()
  try {
    let anvil: Anvil | undefined
    for (let seed = first; seed < first + seeds; seed++) {
      // Its blocks get slower with their number.
      if (!anvil || (seed - first) % 10 === 0) {
        await anvil?.stop()
        anvil = await startWorldAnvil()
      }
      const run = await runEvmWorld({ ...database, anvil }, { seed, steps, deadly: seed % 2 === 0 })
      for (const key of Object.keys(total) as (keyof EvmOutcome)[]) total[key] += run[key]
      console.log(`seed ${seed}:`, JSON.stringify(total))
    }
    await anvil?.stop()
    console.log(
      'every list and notification as the blocks say, every balance as on the chain and as the records add up:',
      total,
    )
  } finally {
    await database.stop()
  }
}
