import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Anvil, startAnvil } from '../../devnet/anvil/anvil.ts'
import { encodeCall } from '../../src/chains/evm/abi.ts'
import { createEvmChain } from '../../src/chains/evm/chain.ts'
import { createPool } from '../../src/chains/upstream/pool.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { findCursor } from '../../src/storage/blocks.ts'
import { type Connection, type Db, openDatabase } from '../../src/storage/database.ts'
import { migrateDatabase } from '../../src/storage/migrate.ts'
import { createSender, encode } from '../chains/evm/token-contracts.ts'
import { embeddedBinaries, startTestServer } from '../helpers/postgres.ts'
import { createRandom } from '../helpers/random.ts'
import { listAll } from '../helpers/tracked-bench.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { type Caller, createWalletBench, type Outcome } from '../helpers/wallets.ts'
import { createReference, type Effect, nativeAsset, type Tracking } from './evm-reference.ts'

/** Where it happens. */
export type EvmScene = { db: Db; connection: Connection; anvil: Anvil }

/** What one run came to. */
export type EvmOutcome = { compared: number; transfers: number; kills: number; reorgs: number }

const ttlMs = 1_500
const nobody = `0x${'0'.repeat(40)}`

/**
 * Makes blocks of all kinds of transfers on anvil, forks them, kills the tracker's process at any
 * moment or puts it to sleep for longer than its lease, and compares every list with what the blocks
 * say and every balance with the chain's own.
 */
export const runEvmWorld = async (
  { db, connection, anvil }: EvmScene,
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
  const outcome: EvmOutcome = { compared: 0, transfers: 0, kills: 0, reorgs: 0 }

  const pool = createPool({
    network,
    prefix: 'eth',
    upstreams: [{ url: anvil.url }],
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
    const options = { connection, url: anvil.url, chain_id, network, ttlMs }
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

  const item721 = (id: bigint) => `ASSET_TYPE_ERC721/${item}/${id}`
  const kind1155 = (id: bigint) => `ASSET_TYPE_ERC1155/${multi}/${id}`
  let nextItem = 1n
  /** One transaction of any kind, with what it moves if it succeeds. */
  const transact = async (): Promise<void> => {
    const from = accounts[pick(6)]!
    const to = accounts[pick(6)]!
    const value = BigInt(pick(500))
    const asset20 = `ASSET_TYPE_ERC20/${coin}/0`
    const id = BigInt(1 + pick(3))
    const owned = BigInt(1 + pick(Number(nextItem)))
    const native = (one: string): Effect => ({ asset: nativeAsset, from, to: one, value })
    const kinds: [target: string, data: string | undefined, paid: bigint, effects: Effect[]][] = [
      [to, undefined, value, [native(to)]],
      [coin, encode('mint', to, value), 0n, [{ asset: asset20, from: nobody, to, value }]],
      // Often more than there is: then it fails.
      [coin, encode('transfer', to, value), 0n, [{ asset: asset20, from, to, value }]],
      [
        item,
        encode('mint', to, nextItem),
        0n,
        [{ asset: item721(nextItem), from: nobody, to, value: 1n }],
      ],
      [
        item,
        encode('transferFrom', from, to, owned),
        0n,
        [{ asset: item721(owned), from, to, value: 1n }],
      ],
      [
        multi,
        encode('mint', to, id, value),
        0n,
        [{ asset: kind1155(id), from: nobody, to, value }],
      ],
      [
        multi,
        encode('transferMany', to, [1n, 2n], [value / 9n, id]),
        0n,
        [
          { asset: kind1155(1n), from, to, value: value / 9n },
          { asset: kind1155(2n), from, to, value: id },
        ],
      ],
      [
        relay,
        encode('pass', to),
        value,
        [native(relay), { asset: nativeAsset, from: relay, to, value }],
      ],
      [relay, encode('passInVain', to), value, [native(relay)]],
      [relay, encode('fail'), value, [native(relay)]],
    ]
    const chosen = pick(kinds.length)
    const [target, data, paid, effects] = kinds[chosen]!
    if (chosen === 3) nextItem++
    const hash = await send({ from, to: target, ...(data && { data }), value: paid })
    plans.set(hash, effects)
  }
  const grow = async (blocks: number): Promise<void> => {
    for (let left = blocks; left > 0; left--) {
      for (let count = pick(9); count > 0; count--) await transact()
      await anvil.call('evm_mine')
    }
  }
  const fork = async (): Promise<void> => {
    // Anvil answers for its newest block out of the state as it is at that moment, which may be that
    // of the next one already. Dropping that one unseen would leave a balance that no block explains.
    await settled()
    const room = (await reference.head()) - since
    const depth = Math.min(1 + pick(4), room)
    if (depth < 1) return
    const payment = () => ({
      from: accounts[pick(6)],
      to: accounts[pick(6)],
      value: `0x${(1 + pick(5_000)).toString(16)}`,
    })
    await anvil.call('anvil_reorg', [
      depth,
      Array.from({ length: depth }, (_, at) => [payment(), at]),
    ])
    outcome.reorgs++
    // Enough that no balance waits for a block that lost its confirmations.
    for (let left = 0; left < 3; left++) await anvil.call('evm_mine')
  }
  /** Kills the process, or lets it sleep until another one has taken over. */
  const disturb = async (): Promise<void> => {
    await delay(pick(400))
    outcome.kills++
    const old = running
    if (random() < 0.7) await kill(old)
    else {
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
    const isDue = () =>
      db
        .selectFrom('balance_change')
        .select('chain_id')
        .where('chain_id', '=', chain_id)
        .where('due_block', '<=', Number(number))
        .executeTakeFirst()
    await waitFor(`seed ${seed}: no balance is due`, async () => !(await isDue()), longWait)
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
      outcome.compared++
    }
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
    for (const [pair, balance] of listed) {
      const real = await balanceAt(pair, confirmed)
      if (real !== BigInt(balance))
        throw new Error(`seed ${seed}: ${pair} is ${balance}, on the chain ${real} at ${confirmed}`)
    }
  }
  const balanceAt = async (pair: string, number: number): Promise<bigint> => {
    const [address, type, contract, id] = pair.split('/') as [string, string, string?, string?]
    const block = `0x${number.toString(16)}`
    if (!contract) return BigInt(await anvil.call<string>('eth_getBalance', [address, block]))
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
      const disturbing = deadly && random() < 0.6 ? disturb() : undefined
      await grow(1 + pick(4))
      if (random() < 0.4) await fork()
      await disturbing
      await compare()
    }
    return outcome
  } finally {
    for (const child of processes) await kill(child)
    await pool.stop()
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
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '20' },
      seed: { type: 'string', default: '1' },
      steps: { type: 'string', default: '8' },
    },
  })
  const server = await startTestServer(await embeddedBinaries())
  const database = openDatabase({ connection: server.connection, log: silentLog })
  const total: EvmOutcome = { compared: 0, transfers: 0, kills: 0, reorgs: 0 }
  try {
    for (;;) {
      const up = await migrateDatabase(database.db, { log: silentLog }).catch(() => undefined)
      if (up) break
      await delay(100)
    }
    const first = Number(values.seed)
    let anvil: Anvil | undefined
    for (let seed = first; seed < first + Number(values.seeds); seed++) {
      // Its blocks get slower with their number.
      if (!anvil || (seed - first) % 10 === 0) {
        await anvil?.stop()
        anvil = await startAnvil({ args: ['--no-mining'] })
      }
      const scene = { db: database.db, connection: server.connection, anvil }
      const steps = Number(values.steps)
      const run = await runEvmWorld(scene, { seed, steps, deadly: seed % 2 === 0 })
      for (const key of Object.keys(total) as (keyof EvmOutcome)[]) total[key] += run[key]
    }
    await anvil?.stop()
    console.log('every list as the blocks say, every balance as on the chain:', total)
  } finally {
    await database.stop()
    await server.stop()
  }
}
