import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { devCoin } from '../../devnet/sui/accounts.ts'
import { SUI } from '../../devnet/sui/coins.ts'
import { startSuiNode } from '../../devnet/sui/node.ts'
import { createSuiChain } from '../../src/chains/sui/chain.ts'
import { toBlock } from '../../src/chains/sui/checkpoint.ts'
import { suiFamily } from '../../src/chains/sui/family.ts'
import { createByteSet } from '../../src/lib/bytes.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { findCursor } from '../../src/storage/tracking/blocks.ts'
import { bundledProgram } from '../helpers/bundle.ts'
import { startKillableDatabase } from '../helpers/killable-database.ts'
import { oneChain } from '../helpers/one-chain.ts'
import { createRandom } from '../helpers/random.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { createWalletBench } from '../helpers/wallets.ts'
import { readNumbers, runSeeds } from './program.ts'
import type { ChildOptions } from './sui-tracker-child.ts'
import { createTraffic } from './sui-traffic.ts'

/** What one run came to. */
export type KillOutcome = {
  kills: number
  checkpoints: number
  transactions: number
  transfers: number
  notifications: number
  balances: number
  /** Addresses whose records add up to what they hold, for the coin and for the token. */
  sums: number
  /** Runs in which the token was removed and imported again. */
  removals: number
}

type Untracked = { from: number; to: number; changes: ReadonlyMap<string, bigint> }

const asset_type = 'ASSET_TYPE_S'
const bytesOf = (address: string) => Buffer.from(address.slice(2), 'hex')

/**
 * Kills the tracking process again and again while money moves, nodes close streams and go away and
 * balances are imported and refreshed; then every record, notification and balance must be there
 * once and be what the chain says.
 */
export async function runSuiKill(
  db: Db,
  connection: ChildOptions['connection'],
  { seed, kills }: { seed: number; kills: number },
): Promise<KillOutcome> {
  const random = createRandom(seed)
  const node = await startSuiNode({ seed, retain: { checkpoints: 50_000, transactions: 50_000 } })
  const second = await node.openEndpoint()
  const urls = [node.url, second.url]
  const { ledger } = node
  const network = `sui-kill-${seed}-${randomBytes(4).toString('hex')}`
  const chain = createSuiChain({
    upstreams: urls.map((url) => ({ url })),
    limits: { probeMs: 200, timeoutMs: 2_000 },
  })
  const bench = await createWalletBench(db, 's', { network })
  const { network_id } = bench
  bench.installation.chains = oneChain(network_id, () => chain, network)
  const caller = await bench.createCaller()
  const tracked = [
    ...[1, 2, 3].map((number) => node.key(number).toSuiAddress()),
    ...[1, 2, 3].map((number) => `0x${Buffer.alloc(32, number).toString('hex')}`),
  ]
  const traffic = createTraffic(node, {
    random,
    receivers: [...tracked, node.key(8).toSuiAddress(), `0x${'ee'.repeat(32)}`],
  })
  const { pick, chance } = traffic

  const start = async (): Promise<ChildProcess> => {
    const options: ChildOptions = { connection, network_id, network, urls }
    const program = await bundledProgram('test/faults/sui-tracker-child.ts')
    const started = spawn(process.execPath, [program, JSON.stringify(options)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(started.stdout!, 'data')
    return started
  }
  const kill = async (process: ChildProcess) => {
    const ended = once(process, 'exit')
    process.kill('SIGKILL')
    await ended
  }

  const wallets: string[] = []
  for (const confirmation of [0, 1 + pick(4)])
    wallets.push(
      (await caller.call('RegisterWallet', { name: 'w', confirmation })).wallet_id as string,
    )
  // For each address, for each wallet, or for the organization before it has any address.
  const importing = pick(3)
  const importCoin = (whose: object) =>
    caller.call('ImportAsset', { ...whose, asset_type, token_address: devCoin })
  if (importing === 2) await importCoin({})
  for (const [index, address] of tracked.entries()) {
    const wallet_id = wallets[index % 2]
    await caller.call('RegisterAddress', { wallet_id, address, import_asset: chance(0.5) })
  }
  // From the first checkpoint on, so that nothing is lost by an import in the middle of it.
  if (importing === 0) for (const address of tracked) await importCoin({ address })
  if (importing === 1) for (const wallet_id of wallets) await importCoin({ wallet_id })
  const webhook_id = randomUUIDv7()
  await sql`
    insert into webhook (webhook_id, organization_id, network_id, webhook_endpoint, confirmation,
      webhook_state, secret_sealed, next_sequence, create_time, update_time)
    values (${webhook_id}, ${caller.organization_id}, ${network_id}, 'https://example.org', 2,
      'WEBHOOK_STATE_ENABLED', ${randomBytes(8)}, 1, now(), now())`.execute(db)

  let running = await start()
  await waitFor('tracking begins', async () => (await findCursor(db, network_id)) !== undefined, {
    timeoutMs: 60_000,
  })
  const begin = (await findCursor(db, network_id))!.block_number
  const heldBy = (owner: string, type: string): bigint =>
    ledger.sealed
      .coinsOf(owner, type)
      .reduce((sum, coin) => sum + coin.balance, ledger.sealed.fundsOf(owner, type))
  const heldByAll = () =>
    new Map(
      tracked.flatMap((owner) =>
        [SUI, devCoin].map((type) => [`${owner} ${type}`, heldBy(owner, type)] as const),
      ),
    )
  const atBegin = heldByAll()
  /** The checkpoints in which the token of some addresses was not tracked, and by how much it changed. */
  let untracked: Untracked | undefined
  let transactions = 0
  let isOver = false
  let isPaused = false
  let isIdle = false
  const sending = (async () => {
    while (!isOver) {
      if (isPaused) {
        isIdle = true
        await delay(5)
        continue
      }
      isIdle = false
      for (let left = pick(4); left > 0; left--) {
        await traffic.send()
        transactions++
      }
      ledger.seal()
      if (chance(0.02)) node.closeStreams()
      if (chance(0.02)) second.faults.mode = second.faults.mode === 'up' ? 'down' : 'up'
      if (chance(0.1)) {
        const address = tracked[pick(tracked.length)]!
        await caller.call('RefreshAssetBalances', { address, asset_type })
      }
      await delay(5)
    }
  })()
  const reached = async () =>
    await waitFor(
      'the newest checkpoint is tracked',
      async () =>
        (await findCursor(db, network_id))?.block_number === ledger.history.newest().number,
      { timeoutMs: 60_000 },
    )
  /** Removes the token of a wallet or the organization and imports it again, with traffic in between. */
  const removeToken = async () => {
    isPaused = true
    await waitFor('nothing is sent', () => isIdle, { timeoutMs: 60_000 })
    await reached()
    const whose = importing === 1 ? { wallet_id: wallets[0] } : {}
    await caller.call('RemoveAsset', { ...whose, asset_type, token_address: devCoin })
    const lost = tracked.filter((_, index) => importing === 2 || index % 2 === 0)
    const [from, before] = [ledger.history.newest().number, heldByAll()]
    for (let left = 12; left > 0; left--) {
      await traffic.send()
      transactions++
      if (chance(0.5)) ledger.seal()
    }
    ledger.seal()
    await reached()
    const after = heldByAll()
    const changes = new Map(
      lost.map((owner) => {
        const key = `${owner} ${devCoin}` as const
        return [key, after.get(key)! - before.get(key)!] as const
      }),
    )
    untracked = { from, to: ledger.history.newest().number, changes }
    await importCoin(whose)
    isPaused = false
  }
  const removing = importing === 0 ? 0 : 1 + pick(kills)
  for (let left = kills; left > 0; left--) {
    await delay(20 + random() * 400)
    if (left === removing) await removeToken()
    await kill(running)
    running = await start()
  }
  isOver = true
  await sending
  second.faults.mode = 'up'
  for (let i = 0; i < 10; i++) ledger.seal()
  const head = ledger.history.newest().number
  const isDone = async () => {
    const cursor = await findCursor(db, network_id)
    const { rows } = await sql`
      select 1 from balance_change where network_id = ${network_id}
      union all select 1 from job where network_id = ${network_id}`.execute(db)
    return cursor?.block_number === head && rows.length === 0
  }
  await waitFor('all is done', isDone, { timeoutMs: 60_000, everyMs: 50 })
  await kill(running)
  await chain.stop()

  const outcome = await compare()
  await node.stop()
  return { kills, checkpoints: head - begin, transactions, ...outcome }

  async function compare() {
    const accounts = createByteSet(tracked.map(bytesOf))
    const expected: string[] = []
    const notified = new Set<string>()
    for (let number = begin + 1; number <= head; number++) {
      const block = toBlock(ledger.history.toProto(ledger.history.at(number)!))
      const content = block.decode({
        accounts,
        contracts: createByteSet([]),
        tokenAccount: () => [],
      })
      for (const { ordinal, transaction_hash, from, to, value, failed, asset } of content.movements)
        for (const [side, address] of [from, to].entries()) {
          if (!accounts.has(address) || (failed && side === 1)) continue
          if (isUntracked(number, address, asset.contract_address)) continue
          expected.push([number, ordinal, side, transaction_hash.toString('hex'), value].join('/'))
          notified.add(transaction_hash.toString('hex'))
        }
    }
    const { rows } = await sql<{ key: string }>`
      select concat_ws('/', block_number, ordinal, side, encode(transaction_hash, 'hex'), value)
        as key
      from transfer where network_id = ${network_id}`.execute(db)
    const stored = rows.map(({ key }) => key)
    const sameLists = (a: string[], b: string[], what: string) => {
      if (JSON.stringify(a.toSorted()) !== JSON.stringify(b.toSorted()))
        throw new Error(`seed ${seed}: ${a.length} ${what} stored, ${b.length} happened`)
    }
    sameLists(stored, expected, 'transfers')
    const deliveries = await sql<{ hash: string; sequence: number }>`
      select encode(transaction_hash, 'hex') as hash, sequence::int4 from delivery
      where webhook_id = ${webhook_id} and sequence is not null order by sequence`.execute(db)
    sameLists(
      deliveries.rows.map(({ hash }) => hash),
      [...notified],
      'notifications',
    )
    if (deliveries.rows.some(({ sequence }, index) => sequence !== index + 1))
      throw new Error(`seed ${seed}: notifications out of order`)

    const balances = await sql<{ address: Buffer; contract_address: Buffer; balance: bigint }>`
      select b.address, b.contract_address, b.balance from balance b
      join wallet w on w.wallet_id = b.wallet_id where w.network_id = ${network_id}`.execute(db)
    for (const { address, contract_address, balance } of balances.rows) {
      const type = contract_address.length === 0 ? SUI : suiFamily.formatToken!(contract_address)
      const owner = suiFamily.formatAddress(address)
      const held = heldBy(owner, type)
      if (held !== balance)
        throw new Error(`seed ${seed}: ${owner} has ${held} ${type}, stored is ${balance}`)
    }
    return {
      transfers: stored.length,
      notifications: deliveries.rows.length,
      balances: balances.rows.length,
      sums: await compareSums(),
      removals: untracked ? 1 : 0,
    }
  }

  function isUntracked(number: number, address: Buffer, token: Buffer): boolean {
    if (!untracked || token.length === 0) return false
    const { from, to, changes } = untracked
    const key = `${suiFamily.formatAddress(address)} ${suiFamily.formatToken!(token)}`
    return number > from && number <= to && changes.has(key)
  }

  /** What the stored records of an address add up to is what it holds more than at the beginning. */
  async function compareSums(): Promise<number> {
    const { rows } = await sql<{ address: Buffer; contract_address: Buffer; sum: bigint }>`
      select t.address, a.contract_address,
        sum(case t.side when 1 then t.value else -t.value end)::numeric(78, 0) as sum
      from transfer t join asset a on a.asset_id = t.asset_id
      where t.network_id = ${network_id} group by 1, 2`.execute(db)
    const fees = await sql<{ address: Buffer; fee: bigint }>`
      select address, sum(transaction_fee)::numeric(78, 0) as fee from transfer
      where network_id = ${network_id} and side = 0 and (detail->>'pays_fee')::bool
      group by 1`.execute(db)
    const sums = new Map<string, bigint>()
    const add = (address: Buffer, type: string, amount: bigint) => {
      const key = `${suiFamily.formatAddress(address)} ${type}`
      sums.set(key, (sums.get(key) ?? 0n) + amount)
    }
    for (const { address, contract_address, sum } of rows)
      add(
        address,
        contract_address.length === 0 ? SUI : suiFamily.formatToken!(contract_address),
        BigInt(sum),
      )
    for (const { address, fee } of fees.rows) add(address, SUI, -BigInt(fee))
    for (const [key, amount] of untracked?.changes ?? [])
      sums.set(key, (sums.get(key) ?? 0n) + amount)
    const atEnd = heldByAll()
    for (const [key, before] of atBegin) {
      const change = atEnd.get(key)! - before
      if (change !== (sums.get(key) ?? 0n))
        throw new Error(`seed ${seed}: the records of ${key} say ${sums.get(key)}, not ${change}`)
    }
    return atBegin.size
  }
}

if (import.meta.main) {
  const { kills, ...seeds } = readNumbers({ seeds: 100, seed: 1, kills: 3 })
  const { db, connection, stop } = await startKillableDatabase()
  try {
    const total = await runSeeds(seeds, (seed) => runSuiKill(db, connection, { seed, kills }))
    console.log('nothing lost, nothing doubled, balances as the chain has them:', total)
  } finally {
    await stop()
  }
}
