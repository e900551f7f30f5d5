import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Address } from '@ton/core'
import type { DevChain, DevChainOptions } from '../dev-chain.ts'
import { createV2, type Sight } from './api-v2.ts'
import { createV3 } from './api-v3.ts'
import { createTonChain, type TonChain } from './chain.ts'
import { createControl } from './control.ts'
import { createRules } from './executor.ts'
import { createFaucet, createFaucetKey, type Faucet } from './faucet.ts'
import { createFaults, createRandom, type Faults } from './faults.ts'
import { deployJetton, type Jetton, type JettonMetadata } from './jetton.ts'
import { listen } from './server.ts'
import { createPlan, type Plan, type ServerKind, serverOf } from './servers.ts'
import { createStore } from './store.ts'
import { createWalletAccount } from './wallet-account.ts'

/** What can be chosen of a TON development chain beyond what every chain offers. */
export type TonDevChainOptions = DevChainOptions & {
  /** -239 makes it look like the production network; -3, a test network, without it. */
  globalId?: number
  /** Unix seconds of the first block, for a clock that continues by the block instead of by itself. */
  startTime?: number
  /** Blocks of a shard per masterchain block; `random` makes it 0 to 3. */
  rounds?: number | 'random'
  /** Masterchain blocks that are kept. */
  retention?: number
} & TonEndpointOptions

/** How an endpoint behaves. */
export type TonEndpointOptions = {
  /** The server that it behaves like; the one in C++ without it. */
  server?: ServerKind
  /** The rate limit of a plan: requests in any second. */
  requestsPerSecond?: number
}

/** Another address at which the same chain answers, with faults of its own. */
export type TonEndpoint = {
  node_url: string
  faults: Faults
  /** Requests that came, within the rate limit and above it. */
  requests: Plan['counts']
  stop(): Promise<void>
}

/** A running development chain. */
export type TonDevChain = DevChain & {
  chain: TonChain
  faucet: Faucet
  faults: Faults
  /** Makes blocks; the number of the last one. */
  mine(blocks?: number): Promise<number>
  addEndpoint(options?: TonEndpointOptions): Promise<TonEndpoint>
  deployJetton(metadata?: Partial<JettonMetadata>): Promise<Jetton>
}

/**
 * Starts a TON chain on the loopback: the reference executor behind the toncenter API. Without
 * `blockTimeMs` it makes a block every second; with 0 only on command.
 */
export async function startTonDevChain(options: TonDevChainOptions = {}): Promise<TonDevChain> {
  const { port = 0, directory, seed = 1, blockTimeMs = 1_000, globalId = -3 } = options
  const { startTime, rounds = 1, retention = 20_000 } = options
  if (directory !== undefined) mkdirSync(directory, { recursive: true })
  const store = createStore(directory === undefined ? undefined : join(directory, 'ton.sqlite'))
  const key = createFaucetKey(seed)
  // Not the account that `fund` pays from: a client that signs with its key counts its orders alone.
  const wallet = createWalletAccount(seed)
  const random = createRandom(seed)
  const chain = createTonChain({
    store,
    rules: await createRules(),
    seed,
    genesis: new Map([...key.genesis, wallet.genesis]),
    retention,
    ...(startTime !== undefined && {
      timeOf: (seqno: number) => startTime + Math.floor((seqno * (blockTimeMs || 1_000)) / 1_000),
    }),
    roundsOf: () => (rounds === 'random' ? Math.floor(random() * 4) : rounds),
  })
  if (!chain.started()) await chain.seal()

  let nudged: NodeJS.Immediate | undefined
  const nudge = (): void => {
    // A client waits for a block that no timer makes.
    if (blockTimeMs > 0) return
    nudged ??= setImmediate(() => {
      nudged = undefined
      chain.seal().catch(complain)
    })
  }
  const faucet = createFaucet({ chain, purse: key.purse, nudge })
  const controls = {
    fund: async (address: string, amount: bigint, signal?: AbortSignal) =>
      (await faucet.pay(Address.parse(address), amount, signal)).toString('hex'),
    mine: async (blocks = 1) => {
      for (let made = 0; made < blocks; made++) await chain.seal()
      return chain.head().id.seqno
    },
    setDepth: chain.setDepth,
    split: chain.split,
    merge: chain.merge,
    deployJetton: (metadata: Partial<JettonMetadata> = {}) =>
      deployJetton(
        { faucet, admin: key.purse.address },
        { name: 'Development token', symbol: 'DEV', decimals: 9, ...metadata },
      ),
  }
  const open = async (at: number, manners: TonEndpointOptions): Promise<TonEndpoint> => {
    const faults = createFaults(random)
    const server = serverOf(manners.server ?? 'cpp')
    const plan = createPlan(manners.requestsPerSecond ?? Number.POSITIVE_INFINITY)
    const behind = (kind: 'stale' | 'lag', method = 'head') =>
      faults.meet([kind], method)?.blocks ?? 0
    const has = (method?: string) => Math.max(1, chain.head().id.seqno - behind('lag', method))
    const shownHead = () => Math.max(1, has() - behind('stale'))
    const lowest = () => {
      const kept = faults.meet(['pruned'], 'head')?.blocks
      return kept === undefined ? 0 : chain.head().id.seqno - kept + 1
    }
    const sight: Sight = { chain, globalId, shownHead, has, lowest, server }
    const dev = createControl(controls, faults)
    const { port: taken, stop } = await listen(
      at,
      { v2: createV2(sight), v3: createV3(sight), dev },
      { faults, server, plan },
    )
    return { node_url: `http://127.0.0.1:${taken}/api/v2`, faults, requests: plan.counts, stop }
  }

  const endpoints = [await open(port, options)]
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  const beat = (): void => {
    timer = setTimeout(() => {
      chain
        .seal()
        .catch(complain)
        .finally(() => {
          if (!stopped) beat()
        })
    }, blockTimeMs)
  }
  if (blockTimeMs > 0) beat()

  return {
    node_url: endpoints[0]!.node_url,
    faucet_address: wallet.address,
    faucet_key: wallet.key,
    chain,
    faucet,
    faults: endpoints[0]!.faults,
    fund: controls.fund,
    mine: controls.mine,
    deployJetton: controls.deployJetton,
    addEndpoint: async (manners = {}) => {
      const endpoint = await open(0, manners)
      endpoints.push(endpoint)
      return endpoint
    },
    stop: async () => {
      if (stopped) return
      stopped = true
      clearTimeout(timer)
      await Promise.all(endpoints.map((endpoint) => endpoint.stop().catch(() => {})))
      clearImmediate(nudged)
      await chain.idle()
      store.close()
    },
  }
}

const complain = (error: unknown): void => {
  process.emitWarning(`a block could not be made: ${error instanceof Error ? error.stack : error}`)
}
