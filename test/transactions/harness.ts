import { randomUUID } from 'node:crypto'
import { type Anvil, startAnvil } from '../../devnet/anvil/anvil.ts'
import type { Chain } from '../../src/chains/chain.ts'
import { createEvmChain } from '../../src/chains/evm/chain.ts'
import { createPool } from '../../src/chains/evm/pool/pool.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { findCursor } from '../../src/storage/tracking/blocks.ts'
import { startSender } from '../../src/workers/sender/sender.ts'
import { startTracker } from '../../src/workers/tracker/tracker.ts'
import { oneChain } from '../helpers/one-chain.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { type Caller, createWalletBench, type Outcome } from '../helpers/wallets.ts'

/** The first key of every anvil. */
export const anvilKeys = [
  '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
  '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
  '0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a',
  '0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6',
] as const

const shiftedClock = (): Clock & { shift(ms: number): void } => {
  let offset = 0
  return {
    ...systemClock,
    now: () => Date.now() + offset,
    shift: (ms) => {
      offset += ms
    },
  }
}

/** Operations, tracker and sender on an anvil that mines on command. */
export type SendingBench = {
  db: Db
  anvil: Anvil
  chain: Chain
  network_id: number
  clock: ReturnType<typeof shiftedClock>
  accounts: string[]
  caller: Caller
  createCaller(): Promise<Caller>
  mine(blocks?: number): Promise<void>
  /** Waits until the tracker has stored the head. */
  settled(): Promise<void>
  get(transaction_id: string): Promise<Outcome>
  /** Waits for a state, without the prefix. */
  reaches(transaction_id: string, state: string): Promise<Outcome>
  /** Waits until every node is asked again, whatever it did before. */
  healthy(): Promise<void>
  stop(): Promise<void>
}

/** Starts one; the caller stops it. */
export async function startSendingBench(
  db: Db,
  {
    upstreams,
    broadcastTimeoutMs = 30_000,
  }: { upstreams?(anvil: Anvil): Promise<string[]>; broadcastTimeoutMs?: number } = {},
): Promise<SendingBench> {
  const anvil = await startAnvil({ args: ['--no-mining'] })
  const urls = (await upstreams?.(anvil)) ?? [anvil.wsUrl]
  const clock = shiftedClock()
  const pool = createPool({
    network: 'test',
    prefix: 'eth',
    upstreams: urls.map((url) => ({ url })),
    clock,
    log: silentLog,
    limits: { probeIntervalMs: 200 },
  })
  const chain = createEvmChain({ pool, pollMs: 200, broadcastTimeoutMs })
  const bench = await createWalletBench(db, 'c', { clock })
  const { network_id } = bench
  bench.installation.chains = oneChain(network_id, () => chain)
  await waitFor('the node is explored', () => pool.can('debug_trace'))
  const name = { chain: 'c', network: 'mainnet' }
  const shared = { db, clock, log: silentLog, holder: randomUUID(), network_id, name }
  const tracker = startTracker({ ...shared, chain, ttlMs: 5_000 })
  const sender = startSender({
    ...shared,
    chain: { ...chain, sending: chain.sending! },
    ttlMs: 5_000,
    pollMs: 50,
    createdExpiryMs: 72 * 3_600_000,
  })
  const stop = async () => {
    await Promise.all([tracker.stop(), sender.stop()])
    await chain.stop()
    await pool.stop()
    await anvil.stop()
  }
  const caller = await bench.createCaller()
  const settled = async () => {
    const head = await anvil.call<{ hash: string }>('eth_getBlockByNumber', ['latest', false])
    await waitFor('the tracker is at the head', async () => {
      const cursor = await findCursor(db, network_id)
      return cursor?.block_hash.toString('hex') === head.hash.slice(2)
    })
  }
  await settled()
  const get = async (transaction_id: string) =>
    (await caller.call('GetTransaction', { transaction_id })).transaction
  return {
    db,
    anvil,
    chain,
    network_id,
    clock,
    accounts: await anvil.call<string[]>('eth_accounts'),
    caller,
    createCaller: () => bench.createCaller(),
    mine: async (blocks = 1) => {
      await anvil.call('anvil_mine', [`0x${blocks.toString(16)}`])
      await settled()
    },
    settled,
    get,
    reaches: async (transaction_id, state) => {
      let last: Outcome
      const isThere = async () => {
        last = await get(transaction_id)
        return last.transaction_state === `TRANSACTION_STATE_${state}`
      }
      // Beside other files it has taken more than a minute.
      const limit = { timeoutMs: 100_000 }
      await waitFor(`${transaction_id} is ${state}`, isThere, limit).catch((error) => {
        throw new Error(`${error.message}: ${JSON.stringify(last)}`)
      })
      return last
    },
    healthy: () =>
      waitFor('every node is healthy', () =>
        pool.status().every(({ state }) => state === 'healthy'),
      ),
    stop,
  }
}
