import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Anvil, startAnvil } from '../../devnet/anvil/anvil.ts'
import { encodeCall } from '../../src/chains/evm/abi.ts'
import { createEvmChain } from '../../src/chains/evm/chain.ts'
import { createPool } from '../../src/chains/upstream/pool.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { findCursor } from '../../src/storage/blocks.ts'
import type { Connection, Db } from '../../src/storage/database.ts'
import { createSender } from '../chains/evm/token-contracts.ts'
import { isBalanceDue } from '../helpers/balance-due.ts'
import { startKillableDatabase } from '../helpers/killable-database.ts'
import { createRandom } from '../helpers/random.ts'
import { listAll } from '../helpers/tracked-bench.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { type Caller, createWalletBench, type Outcome } from '../helpers/wallets.ts'
import { createReference, type Effect, type Tracking } from './evm-reference.ts'
import { createTraffic } from './evm-traffic.ts'
import { startOrderlyNode } from './orderly-node.ts'
import { readNumbers } from './program.ts'
import { nativeSumOf } from './record-sums.ts'

/** Where it happens. */
export type EvmScene = {
  db: Db
  connection: Connection
  anvil: Anvil
  /** Kills the database, which comes back by itself. */
  killDatabase(): Promise<void>
}

/** What one run came to. */
export type EvmOutcome = Record<
  'compared' | 'balances' | 'transfers' | 'sums' | 'kills' | 'sleeps' | 'database_kills' | 'reorgs',
  number
>

const nothing = (): EvmOutcome => ({
  compared: 0,
  balances: 0,
  transfers: 0,
  sums: 0,
  kills: 0,
  sleeps: 0,
  database_kills: 0,
  reorgs: 0,
})

const ttlMs = 1_500

/**
 * Makes blocks of all kinds of transfers on anvil, forks them at any moment, kills the tracker's
 * process or the database or puts the process to sleep for longer than its lease, and compares every list with what the blocks
 * say and every balance with the chain's own.
 */
export const runEvmWorld = async (
  { db, connection, anvil, killDatabase }: EvmScene,
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
  const network = `evm-${seed}-${Date.now()}`
  const bench = await createWalletBench(db, 'c', { network })
  const { chain_id } = bench
  const plans = new Map<string, Effect[]>()
  const reference = createReference(anvil, plans)
  const outcome = nothing()
  const node = await startOrderlyNode(anvil)

  const pool = createPool({
    network,
    prefix: 'eth',
    upstreams: [{ url: node.url }],
    clock: systemClock,
    log: silentLog,
  })
  bench.installation.chains = {
    find: () => ({ chain_id, network, chain: createEvmChain({ pool }) }),
  }
  const wallet = async (confirmation: number, mine: string[], contracts: string[]) => {
    const caller = await bench.createCaller()
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', confirmation })
    await caller.call('BatchRegisterAddresses', { wallet_id, addresses: mine })
    for (const contract_address of contracts) {
      const kind = { [coin]: 'ERC20', [item]: 'ERC721', [multi]: 'ERC1155' }[contract_address]
      const contract_type = `CONTRACT_TYPE_${kind}`
      await caller.call('RegisterContract', { contract_address, contract_type })
    }
    const tracking = { addresses: new Set(mine), contracts: new Set(contracts), confirmation }
    return { caller, wallet_id, tracking }
  }
  // Two organizations have an address in common, and not the same contracts.
  const wallets = [
    await wallet(1, tracked.slice(0, 2), [coin, item, multi]),
    await wallet(3, tracked.slice(1, 4), [coin]),
  ]

  const processes = new Set<ChildProcess>()
  const startProcess = () => {
    // In half of them balance work waits in backlogs whenever the tracker is behind at all.
    const farBehind = seed % 2 === 0 ? 0 : undefined
    const options = { connection, url: node.url, chain_id, network, ttlMs, farBehind }
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, 'tracker-process.ts'), JSON.stringify(options)],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    )
    processes.add(child)
    child.once('exit', () => processes.delete(child))
    return child
  }
  const kill = async (child: ChildProcess) => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  let running = startProcess()
  const trackedBlock = async () => (await findCursor(db, chain_id))?.block_number
  await waitFor('tracking begins', async () => (await trackedBlock()) !== undefined, longWait)
  const since = (await trackedBlock())! + 1

  const balanceOf = async (address: string, number: number): Promise<bigint> =>
    BigInt(await anvil.call<string>('eth_getBalance', [address, `0x${number.toString(16)}`]))

  let disturbances = 0
  const nextTransaction = createTraffic({ coin, item, multi, relay }, accounts, pick)
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
    await node.alone(() => anvil.call('anvil_reorg', [depth, branch]))
    outcome.reorgs++
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

  const settled = async (): Promise<void> => {
    const { hash, number } = await anvil.call<{ hash: string; number: string }>(
      'eth_getBlockByNumber',
      ['latest', false],
    )
    await waitFor(
      `seed ${seed}: the tracker is at the head`,
      async () => (await findCursor(db, chain_id))?.block_hash.toString('hex') === hash.slice(2),
      longWait,
    )
    await waitFor(
      `seed ${seed}: no balance is due`,
      async () => !(await isBalanceDue(db, chain_id, Number(number))),
      longWait,
    )
  }
  const compare = async (): Promise<void> => {
    await settled()
    for (const { caller, wallet_id, tracking } of wallets) {
      const { transfers, touched, confirmed } = await reference.expected(since, tracking)
      const listed = (await listAll(caller, { wallet_id, page_size: 100 })).map(lineOf).sort()
      const missing = transfers.filter((line) => !listed.includes(line))
      const extra = listed.filter((line) => !transfers.includes(line))
      if (missing.length + extra.length > 0 || listed.length !== transfers.length)
        throw new Error(
          `seed ${seed}: ${JSON.stringify({ missing, extra, count: [transfers.length, listed.length] })}`,
        )
      outcome.transfers += listed.length
      await compareBalances(caller, wallet_id, { touched, confirmed, tracking })
      const head = await reference.head()
      for (const address of tracking.addresses) await compareSum(caller, address, head)
      outcome.compared++
    }
  }
  /** What the records of an address add up to, fees once, is what its balance has changed by. */
  const compareSum = async (caller: Caller, address: string, head: number): Promise<void> => {
    const records = await listAll(caller, { address, page_size: 100 })
    const ids = new Set(records.map((one) => `${one.transfer_id} ${one.direction}`))
    if (ids.size !== records.length) throw new Error(`seed ${seed}: two transfers have one id`)
    const sum = nativeSumOf(records)
    const change = (await balanceOf(address, head)) - (await balanceOf(address, since - 1))
    if (sum !== change)
      throw new Error(`seed ${seed}: the records of ${address} say ${sum}, the chain ${change}`)
    outcome.sums++
  }
  const compareBalances = async (
    caller: Caller,
    wallet_id: string,
    { touched, confirmed }: { touched: Set<string>; confirmed: number; tracking: Tracking },
  ): Promise<void> => {
    const listed = new Map<string, string>()
    for (const asset_type of ['C', 'ERC20', 'ERC721', 'ERC1155'].map(
      (one) => `ASSET_TYPE_${one}`,
    )) {
      const { assets } = await caller.call('ListAssets', { wallet_id, asset_type, page_size: 100 })
      for (const asset of assets)
        listed.set(`${asset.address}/${assetOf(asset, asset.asset_metadata)}`, asset.balance)
    }
    for (const pair of touched)
      if (!listed.has(pair)) throw new Error(`seed ${seed}: no balance of ${pair}`)
    const check = async ([pair, balance]: [string, string]) => {
      const real = await balanceAt(pair, confirmed)
      if (real !== BigInt(balance))
        throw new Error(`seed ${seed}: ${pair} is ${balance}, on the chain ${real} at ${confirmed}`)
    }
    await Promise.all([...listed].map(check))
    outcome.balances += listed.size
  }
  const balanceAt = async (pair: string, number: number): Promise<bigint> => {
    const [address, type, contract, id] = pair.split('/') as [string, string, string?, string?]
    if (!contract) return await balanceOf(address, number)
    const block = `0x${number.toString(16)}`
    const bytes = Buffer.from(address.slice(2), 'hex')
    const data =
      type === 'ASSET_TYPE_ERC721'
        ? encodeCall('ownerOf(uint256)', BigInt(id!))
        : type === 'ASSET_TYPE_ERC1155'
          ? encodeCall('balanceOf(address,uint256)', bytes, BigInt(id!))
          : encodeCall('balanceOf(address)', bytes)
    const word = BigInt(
      await anvil.call<string>('eth_call', [{ to: contract, data }, block]).catch(() => '0x0'),
    )
    return type === 'ASSET_TYPE_ERC721' ? BigInt(word === BigInt(address)) : word
  }

  try {
    for (let step = 0; step < steps; step++) {
      const disturbing = deadly && (step < 2 || random() < 0.6) ? disturb() : undefined
      await grow(1 + pick(4))
      if (random() < 0.4) await fork()
      await disturbing
      await compare()
    }
    return outcome
  } finally {
    for (const child of processes) await kill(child)
    await pool.stop()
    await node.stop()
  }
}

const longWait = { timeoutMs: 120_000, everyMs: 50 }

const assetOf = ({ asset_type }: { asset_type: string }, metadata: Outcome): string => {
  const [token] = Object.values(metadata ?? {}) as Record<string, string>[]
  return token ? `${asset_type}/${token.contract_address}/${token.token_id ?? 0}` : asset_type
}

const lineOf = (one: Outcome): string =>
  [
    one.transaction_hash,
    assetOf(one, one.transfer_metadata),
    one.from,
    one.to,
    one.value,
    one.transfer_state,
    one.block_number,
  ].join()

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
        anvil = await startAnvil({ args: ['--no-mining'] })
      }
      const run = await runEvmWorld({ ...database, anvil }, { seed, steps, deadly: seed % 2 === 0 })
      for (const key of Object.keys(total) as (keyof EvmOutcome)[]) total[key] += run[key]
      console.log(`seed ${seed}:`, JSON.stringify(total))
    }
    await anvil?.stop()
    console.log(
      'every list as the blocks say, every balance as on the chain and as the records add up:',
      total,
    )
  } finally {
    await database.stop()
  }
}
