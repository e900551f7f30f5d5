// The embedded mode: local chains, a demo organization and traffic. It uses `devnet` (in a child
// process) and the client, as an outside program would. Nothing of it runs with a configuration
// file.

import { join } from 'node:path'
import { verifyWebhook } from '../../../client/src/index.ts'
import type { DevFacts, DevTag } from '../../../devnet/keeper-messages.ts'
import { families } from '../../chains/registry.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import type { WalletService } from '../../contract/variant.ts'
import type { DevTools } from '../../http/dev.ts'
import { isLoopback } from '../../lib/net/loopback.ts'
import { tryListen } from '../../lib/net/try-listen.ts'
import { lockDataDir, startWaitMs } from '../../storage/embedded/lock.ts'
import { type App, type AppOptions, startApp } from '../app.ts'
import type { Config, Overrides } from '../config/schema.ts'
import { openDataDir } from '../data-directory.ts'
import { type ChainKeeper, DevChainError, startChainKeeper } from './chain-keeper.ts'
import { type DemoWallets, ensureDemoWallets } from './demo.ts'
import type { DevEvent } from './event-line.ts'
import { createExampleRefresh, type ExampleMaterial, prepareExamples } from './example-material.ts'
import { exampleRequests } from './examples.ts'

/** A running service with local chains. */
export type EmbeddedApp = App & {
  facts: ChainKeeper['facts']
  failed: ChainKeeper['failed']
  wallets: DemoWallets
}

/** How the embedded mode is started. */
export type EmbeddedOptions = Omit<AppOptions, 'config' | 'local'> & {
  /** The configuration with these chains added to it. */
  configure(overrides: Overrides): Config
  tags: readonly DevTag[]
  /** Whether something happens on the chains by itself. */
  traffic: boolean
  /** Breaks off the start while the chains are waited for. */
  signal?: AbortSignal
  onEvent(event: DevEvent): void
}

const kinds: Readonly<Record<DevTag, string>> = {
  c: 'evm',
  q: 'evm',
  t: 'ton',
  s: 'sui',
  p: 'polkadot',
}

// One whole coin in the smallest unit, which `faucet` sends unless an amount is given.
const coins: Readonly<Record<DevTag, bigint>> = {
  c: 10n ** 18n,
  q: 10n ** 18n,
  t: 10n ** 9n,
  s: 10n ** 9n,
  p: 10n ** 10n,
}

/**
 * Starts local chains, the service on them, a demo wallet on each and, if asked for, traffic. The
 * chains come first and go last, so that the service never sees them missing.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedApp> {
  const { env, cwd, log, tags, traffic, signal, onEvent, configure } = options
  await using starting = new AsyncDisposableStack()
  const config = configure({})
  const dataDir = await openDataDir(config, env, cwd)
  // Before anything of an earlier start is ended: it may belong to a service that runs.
  const lock = await lockDataDir(dataDir, startWaitMs)
  starting.defer(lock.release)
  // Noticed now, and not after all chains have started.
  const taken = await tryListen(config.server.host, config.server.port)
  if (taken) throw taken
  const keeper = await startChainKeeper({
    directory: join(dataDir, 'chains'),
    tags,
    log,
    signal,
    onReorganized: (depth) => onEvent({ kind: 'reorganized', depth, time: Date.now() }),
  })
  starting.defer(keeper.stop)
  signal?.throwIfAborted()
  // Filled after the service has started: the wallets are created through its API.
  const wallets: DemoWallets = {}
  const material: ExampleMaterial = { spare: {}, webhook_history_ids: {} }
  let refreshExamples: (() => Promise<void>) | undefined
  const tools = createTools(keeper, wallets, onEvent)
  const configureLocal = () => configure({ chains: chainsOf(keeper.facts) })
  const app = await startApp({
    ...options,
    config: configureLocal(),
    reread: configureLocal,
    local: {
      lock,
      facts: keeper.facts,
      tools,
      examples: async (organization_id) => {
        await refreshExamples?.()
        return exampleRequests(wallets, organization_id, material)
      },
    },
  })
  starting.defer(app.stop)
  if (app.demo) {
    const { base_url, demo } = app
    const pair = demo.admin
    Object.assign(
      wallets,
      await ensureDemoWallets({ dataDir, base_url, pair, facts: keeper.facts, log }),
    )
    if (traffic) keeper.startTraffic(targetsOf(wallets, keeper.facts))
    if (isLoopback(config.server.host)) {
      const stopped = new AbortController()
      const { facts, fund } = keeper
      const { signal } = stopped
      refreshExamples = createExampleRefresh(material, { base_url, pair, log })
      // The start does not wait for the documentation.
      const prepared = prepareExamples(material, {
        ...{ base_url, pair, facts, wallets, fund, signal, log },
      })
      starting.defer(async () => {
        stopped.abort()
        await prepared
      })
    }
  }

  const running = starting.move()
  let stopped: Promise<void> | undefined
  return {
    ...app,
    facts: keeper.facts,
    failed: keeper.failed,
    wallets,
    stop: () => {
      stopped ??= running.disposeAsync()
      return stopped
    },
  }
}

/**
 * The section of the configuration that names the local nodes. EVM chains have both networks of the
 * specification (4.5), so that every gateway address in it works; both are the same local chain, because
 * a second anvil for each would cost every start its time and memory.
 */
const chainsOf = (facts: ChainKeeper['facts']): NonNullable<Overrides['chains']> =>
  Object.fromEntries(
    (Object.entries(facts) as [DevTag, DevFacts][]).map(([tag, { node_url }]) => {
      const network = { upstreams: [{ name: 'local', url: node_url }] }
      const networks =
        kinds[tag] === 'evm' ? { mainnet: network, ropsten: network } : { mainnet: network }
      return [tag, { kind: kinds[tag], shared: true, networks }]
    }),
  )

/** Chain q has no wallets; its traffic goes to the address of c's. */
const targetsOf = (wallets: DemoWallets, facts: ChainKeeper['facts']) => ({
  ...Object.fromEntries(Object.entries(wallets).map(([tag, { address }]) => [tag, address])),
  ...(facts.q && wallets.c && { q: wallets.c.address }),
})

const familyOf = (chain: string) => families[chain === 'q' ? 'c' : (chain as WalletService)]()

function createTools(
  keeper: ChainKeeper,
  wallets: DemoWallets,
  onEvent: EmbeddedOptions['onEvent'],
): DevTools {
  const refuse = (error: unknown): never => {
    if (error instanceof DevChainError)
      throw new OperationError('UPSTREAM_UNAVAILABLE', { detail: error.message })
    throw error
  }
  return {
    isRunning: (chain) => Object.hasOwn(keeper.facts, chain),
    coin: (chain) => coins[chain as DevTag],
    transactionField: (chain) => familyOf(chain).transactionField,
    checkAddress: (chain, address) => {
      const parsed = familyOf(chain).parseAddress(address)
      return parsed.ok ? undefined : parsed.detail
    },
    fund: (chain, address, amount) => {
      const family = familyOf(chain)
      const parsed = family.parseAddress(address)
      const canonical = parsed.ok ? family.formatAddress(parsed.bytes) : address
      return keeper.fund(chain as DevTag, canonical, amount).catch(refuse)
    },
    reorganize: (depth) => keeper.reorganize(depth).catch(refuse),
    nodes: () =>
      (Object.keys(keeper.facts) as DevTag[]).map((chain) => ({
        ...{ chain, is_running: keeper.isUp(chain), can_mine: kinds[chain] === 'evm' },
      })),
    mine: (chain, blocks) => keeper.mine(chain as DevTag, blocks).catch(refuse),
    stopNode: (chain) => keeper.stopNode(chain as DevTag).catch(refuse),
    startNode: (chain) => keeper.startNode(chain as DevTag).catch(refuse),
    receive: async (chain, headers, body) => {
      const secret = wallets[chain as WalletService]?.signing_secret
      if (secret === undefined) return false
      try {
        const notification = await verifyWebhook({ secret, headers, body })
        onEvent({ kind: 'notified', chain, notification, time: Date.now() })
        return true
      } catch {
        return false
      }
    },
  }
}
