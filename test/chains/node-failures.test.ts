import { afterAll } from 'vitest'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import { startPolkadotDevChain } from '../../devnet/polkadot/node.ts'
import { RpcError } from '../../devnet/polkadot/rpc.ts'
import { startSuiNode } from '../../devnet/sui/node.ts'
import { startTonDevChain } from '../../devnet/ton/ton-dev-chain.ts'
import { createEvmChain } from '../../src/chains/evm/chain.ts'
import { createPool } from '../../src/chains/evm/pool/pool.ts'
import { createPolkadotChain } from '../../src/chains/polkadot/chain.ts'
import { createSuiChain } from '../../src/chains/sui/chain.ts'
import {
  describeNodeFailures,
  type FailingNode,
  type StartFailure,
} from '../../src/chains/testing/node-failures.ts'
import { createTonChain } from '../../src/chains/ton/chain.ts'
import type { WalletService } from '../../src/contract/variant.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { type ProxyFault, startFaultProxy } from '../faults/upstream-proxy.ts'
import {
  type Detour,
  startDetour,
  startGrpcRateLimiter,
  startJsonFilter,
  startRateLimiter,
} from './detour.ts'

type Stand = { port: number; stop(): Promise<void> }

/** Replaces the preferred node by another server for a while. */
const createReplacing = (detour: Detour, port: number) => {
  const started: Stand[] = []
  return {
    replaceBy: (start: () => Promise<Stand>) => async () => {
      const stand = await start()
      started.push(stand)
      detour.lead(stand.port)
      return () => detour.lead(port)
    },
    stop: async () => {
      await detour.stop()
      for (const { stop } of started) await stop()
    },
  }
}

/** A failure that comes and goes. */
const flapping =
  (fail: () => void, heal: () => void): StartFailure =>
  () => {
    let isFailing = false
    const timer = setInterval(() => {
      isFailing = !isFailing
      if (isFailing) fail()
      else heal()
    }, 100)
    return () => {
      clearInterval(timer)
      heal()
    }
  }

const portOf = (url: string) => Number(new URL(url).port)

// One for all failures: its start costs more than a whole case.
let starting: ReturnType<typeof startAnvil> | undefined
afterAll(async () => {
  await (await starting)?.kill()
})

const startEvm = async (): Promise<FailingNode> => {
  starting ??= startAnvil({ args: ['--no-mining'] })
  const anvil = await starting
  const port = portOf(anvil.url)
  const proxy = await startFaultProxy(port)
  const detour = await startDetour(portOf(proxy.url))
  const { replaceBy, stop: stopDetour } = createReplacing(detour, portOf(proxy.url))
  const mine = async (count: number) =>
    void (await anvil.call('anvil_mine', [`0x${count.toString(16)}`]))
  await mine(5)
  const height = Number(await anvil.call('eth_blockNumber'))
  const oldHead = `0x${(height - 2).toString(16)}`
  const pool = createPool({
    ...{ network: 'test', prefix: 'eth', clock: systemClock, log: silentLog },
    upstreams: [{ url: `http://127.0.0.1:${detour.port}` }, { url: anvil.url, priority: 1 }],
    limits: { probeIntervalMs: 100 },
  })
  const chain = createEvmChain({ pool, pollMs: 200 })
  const set = (fault: ProxyFault) => () => {
    proxy.set(fault)
    return () => proxy.set(undefined)
  }
  const filter = (...args: Parameters<typeof startJsonFilter>) =>
    replaceBy(() => startJsonFilter(...args))
  const isOfBlocks = (method: string) => /^eth_getBlock/.test(method)
  return {
    chain,
    mine,
    failures: {
      'refuses connections': set('resets'),
      'does not answer': set('silence'),
      'limits the rate': replaceBy(() => startRateLimiter()),
      'limits the rate with Retry-After': set('429'),
      'fails with server errors': set('html'),
      // All blocks but the last two.
      'is behind': filter(port, async ({ id, method, params }, forward) => {
        const [block] = params as [unknown]
        if (method === 'eth_blockNumber') return { jsonrpc: '2.0', id, result: oldHead }
        if (block === 'latest' || block === 'pending')
          return await forward({ id, method, params: [oldHead, ...(params as unknown[]).slice(1)] })
        const isAbove = isOfBlocks(method) && Number(block) > height - 2 && Number(block) < 1e6
        return isAbove ? { jsonrpc: '2.0', id, result: null } : undefined
      }),
      // Blocks whose header is not that of their hash.
      'returns invalid data': filter(port, async (call, forward) => {
        if (!isOfBlocks(call.method)) return undefined
        const reply = (await forward(call)) as { result?: object | null }
        return reply.result
          ? { ...reply, result: { ...reply.result, stateRoot: `0x${'11'.repeat(32)}` } }
          : reply
      }),
      'has pruned its history': filter(port, async ({ id, method, params }) =>
        isOfBlocks(method) && (params as unknown[])[0] !== 'latest'
          ? { jsonrpc: '2.0', id, error: { code: 4444, message: 'pruned history unavailable' } }
          : undefined,
      ),
      'is on another chain': set('other chain'),
      // A shorter branch: a longer one of an EVM chain is the canonical one.
      'is on another fork': replaceBy(async () => {
        const other = await startAnvil({ args: ['--no-mining', '--timestamp', '1700000000'] })
        await other.call('anvil_mine', [`0x${(height - 1).toString(16)}`])
        return { port: portOf(other.url), stop: other.stop }
      }),
      flaps: flapping(
        () => proxy.set('resets'),
        () => proxy.set(undefined),
      ),
    },
    stop: async () => {
      await chain.stop()
      await pool.stop()
      await stopDetour()
      await proxy.stop()
    },
  }
}

const startTon = async (): Promise<FailingNode> => {
  const options = { blockTimeMs: 0, startTime: 1_800_000_000 }
  const dev = await startTonDevChain(options)
  const { node_url, faults } = await dev.addEndpoint()
  const port = portOf(node_url)
  const detour = await startDetour(port)
  const { replaceBy, stop: stopDetour } = createReplacing(detour, port)
  await dev.mine(5)
  const upstreams = [
    { url: node_url.replace(`:${port}/`, `:${detour.port}/`) },
    { url: dev.node_url, priority: 1 },
  ]
  const chain = createTonChain({ upstreams, pollMs: 50 })
  const add = (fault: Parameters<typeof faults.add>[0]) => () => {
    faults.add(fault)
    return faults.clear
  }
  const filter = (...args: Parameters<typeof startJsonFilter>) =>
    replaceBy(() => startJsonFilter(...args))
  const other = (change: Parameters<typeof startTonDevChain>[0]) => async () => {
    const started = await startTonDevChain({ ...options, ...change })
    await started.fund(dev.faucet_address, 1n)
    await started.mine(12)
    return { port: portOf(started.node_url), stop: started.stop }
  }
  return {
    chain,
    mine: async (count) => void (await dev.mine(count)),
    failures: {
      'refuses connections': add({ kind: 'reset' }),
      'does not answer': add({ kind: 'timeout' }),
      'limits the rate': add({ kind: '429' }),
      'limits the rate with Retry-After': add({ kind: '429', retryAfterSeconds: 1 }),
      'fails with server errors': add({ kind: '500' }),
      'is behind': add({ kind: 'lag', blocks: 20 }),
      // Headers that name another block than the one before.
      'returns invalid data': filter(port, async (call, forward) => {
        if (call.method !== 'getBlockHeader') return undefined
        const reply = (await forward(call)) as { result: { prev_blocks: object[] } }
        const root_hash = Buffer.alloc(32, 0x11).toString('base64')
        const prev_blocks = reply.result.prev_blocks.map((block) => ({ ...block, root_hash }))
        return { ...reply, result: { ...reply.result, prev_blocks } }
      }),
      'has pruned its history': filter(port, async ({ id, method }) =>
        method === 'getMasterchainInfo'
          ? undefined
          : { ok: false, error: 'LITE_SERVER_UNKNOWN: cannot find block', code: 500, id },
      ),
      'is on another chain': replaceBy(other({ seed: 2, globalId: -239 })),
      // TON has no forks after finality: this is a node with another history of the same network.
      'is on another fork': replaceBy(other({})),
      flaps: add({ kind: 'reset', probability: 0.5 }),
    },
    stop: async () => {
      await chain.stop()
      await stopDetour()
      await dev.stop()
    },
  }
}

const startSui = async (): Promise<FailingNode> => {
  const node = await startSuiNode()
  const sound = await node.openEndpoint()
  const detour = await startDetour(node.port)
  const { replaceBy, stop: stopDetour } = createReplacing(detour, node.port)
  const { ledger, faults } = node
  for (let made = 0; made < 5; made++) ledger.seal()
  const chain = createSuiChain({
    upstreams: [{ url: `http://127.0.0.1:${detour.port}` }, { url: sound.url, priority: 1 }],
    limits: { pollMs: 50, probeMs: 100, timeoutMs: 1_000, stallMs: 400, patienceMs: 2_000 },
  })
  const set = (change: Partial<typeof faults>) => () => {
    const before = { ...faults }
    Object.assign(faults, change)
    return () => void Object.assign(faults, before)
  }
  const other = (seed?: number) => async () => {
    const started = await startSuiNode(seed === undefined ? {} : { seed })
    for (let made = 0; made < 12; made++) started.ledger.seal(2_000_000_000_000 + made)
    return { port: started.port, stop: started.stop }
  }
  return {
    chain,
    mine: async (count) => {
      for (let made = 0; made < count; made++) ledger.seal()
    },
    failures: {
      'refuses connections': set({ mode: 'down' }),
      'does not answer': set({ mode: 'hanging' }),
      // RESOURCE_EXHAUSTED and INTERNAL
      'limits the rate': set({ status: 8 }),
      'limits the rate with Retry-After': replaceBy(() => startGrpcRateLimiter(1)),
      'fails with server errors': set({ status: 13 }),
      'is behind': set({ lag: 100 }),
      'returns invalid data': set({ garbled: true }),
      'has pruned its history': set({ lowest: 1_000 }),
      'is on another chain': replaceBy(other(2)),
      // Sui has no forks: this is a node with another history of the same network.
      'is on another fork': replaceBy(other()),
      flaps: flapping(
        () => {
          faults.mode = 'down'
        },
        () => {
          faults.mode = 'up'
        },
      ),
    },
    stop: async () => {
      await chain.stop()
      await stopDetour()
      await node.stop()
    },
  }
}

const startPolkadot = async (): Promise<FailingNode> => {
  const node = await startPolkadotDevChain({ manual: true })
  node.mine(5)
  const sound = await node.serve()
  const { server } = node
  const detour = await startDetour(server.port)
  const { replaceBy, stop: stopDetour } = createReplacing(detour, server.port)
  const chain = createPolkadotChain({
    upstreams: [{ url: `ws://127.0.0.1:${detour.port}` }, { url: sound.url, priority: 1 }],
    ...{ pollMs: 100, probeEveryMs: 200, requestTimeoutMs: 1_000, waitMs: 10_000 },
  })
  const mode = (failing: 'down' | 'hanging') => () => {
    server.setMode(failing)
    return () => server.setMode('up')
  }
  const tamper = (change: (method: string) => unknown) => () => {
    server.tamper(change)
    return () => server.tamper(undefined)
  }
  const refuse = (code: number, message: string) =>
    tamper(() => {
      throw new RpcError(code, message)
    })
  type Other = Awaited<ReturnType<typeof startPolkadotDevChain>>
  const other = (prepare: (started: Other) => void, seed = 0) =>
    replaceBy(async () => {
      // The clock of a manual chain goes by slots: the same steps give the same blocks.
      const started = await startPolkadotDevChain({ manual: true, seed })
      prepare(started)
      return { port: started.server.port, stop: started.stop }
    })
  return {
    chain,
    mine: async (count) => void node.mine(count),
    failures: {
      'refuses connections': mode('down'),
      'does not answer': mode('hanging'),
      'limits the rate': refuse(-32_005, 'too many requests'),
      // Only a handshake has headers.
      'limits the rate with Retry-After': replaceBy(() => startRateLimiter(1)),
      'fails with server errors': refuse(-32_603, 'Internal error'),
      'is behind': other((started) => started.mine(3)),
      'returns invalid data': tamper((method) =>
        method === 'chain_getBlock' ? { block: {} } : undefined,
      ),
      'has pruned its history': () => {
        server.prune(1_000)
        return () => server.prune(0)
      },
      'is on another chain': other((started) => started.mine(12), 7),
      // Final blocks have no forks: this is a node with another history of the same network.
      'is on another fork': other((started) => {
        started.make({ skip: 1 })
        started.mine(11)
      }),
      flaps: () => {
        const timer = setInterval(() => server.dropConnections(), 100)
        return () => clearInterval(timer)
      },
    },
    stop: async () => {
      await chain.stop()
      await stopDetour()
      await node.stop()
    },
  }
}

// Every family has every failure: a family or a failure that is missing does not compile.
const chains: Record<WalletService, readonly [string, () => Promise<FailingNode>]> = {
  c: ['of EVM blocks', startEvm],
  t: ['of TON', startTon],
  s: ['of Sui', startSui],
  p: ['of Polkadot', startPolkadot],
}

for (const [name, start] of Object.values(chains)) describeNodeFailures(name, start)
