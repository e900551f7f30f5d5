import { startAnvil } from '../../devnet/anvil/anvil.ts'
import { startPolkadotDevChain } from '../../devnet/polkadot/node.ts'
import { startSuiNode } from '../../devnet/sui/node.ts'
import { startTonDevChain } from '../../devnet/ton/ton-dev-chain.ts'
import { createEvmChain } from '../../src/chains/evm/chain.ts'
import { createPool } from '../../src/chains/evm/pool/pool.ts'
import { createPolkadotChain } from '../../src/chains/polkadot/chain.ts'
import { createSuiChain } from '../../src/chains/sui/chain.ts'
import { describeNodeFailures } from '../../src/chains/testing/node-failures.ts'
import { createTonChain } from '../../src/chains/ton/chain.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { type ProxyFault, startFaultProxy } from '../faults/upstream-proxy.ts'

describeNodeFailures('of EVM blocks', async () => {
  const anvil = await startAnvil({ args: ['--no-mining'] })
  const proxy = await startFaultProxy(Number(new URL(anvil.url).port))
  const mine = async (count: number) =>
    void (await anvil.call('anvil_mine', [`0x${count.toString(16)}`]))
  await mine(5)
  const pool = createPool({
    ...{ network: 'test', prefix: 'eth', clock: systemClock, log: silentLog },
    upstreams: [{ url: proxy.url }, { url: anvil.url, priority: 1 }],
    limits: { probeIntervalMs: 100 },
  })
  const chain = createEvmChain({ pool, pollMs: 200 })
  const set = (fault: ProxyFault) => () => {
    proxy.set(fault)
    return () => proxy.set(undefined)
  }
  return {
    chain,
    mine,
    failures: {
      'refuses connections': set('resets'),
      'does not answer': set('silence'),
      'limits the rate with Retry-After': set('429'),
      'fails with server errors': set('html'),
      'returns invalid data': set('damaged'),
      'is on another chain': set('other chain'),
      flaps: () => {
        let isFailing = false
        const timer = setInterval(() => {
          isFailing = !isFailing
          proxy.set(isFailing ? 'resets' : undefined)
        }, 100)
        return () => {
          clearInterval(timer)
          proxy.set(undefined)
        }
      },
    },
    stop: async () => {
      await chain.stop()
      await pool.stop()
      await proxy.stop()
      await anvil.stop()
    },
  }
})

describeNodeFailures('of TON', async () => {
  const dev = await startTonDevChain({ blockTimeMs: 0, startTime: 1_800_000_000 })
  const { node_url, faults } = await dev.addEndpoint()
  await dev.mine(5)
  const upstreams = [{ url: node_url }, { url: dev.node_url, priority: 1 }]
  const chain = createTonChain({ upstreams, pollMs: 50 })
  const add = (fault: Parameters<typeof faults.add>[0]) => () => {
    faults.add(fault)
    return faults.clear
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
      flaps: add({ kind: 'reset', probability: 0.5 }),
    },
    stop: async () => {
      await chain.stop()
      await dev.stop()
    },
  }
})

describeNodeFailures('of Sui', async () => {
  const node = await startSuiNode()
  const sound = await node.openEndpoint()
  const { ledger, faults } = node
  for (let made = 0; made < 5; made++) ledger.seal()
  const chain = createSuiChain({
    upstreams: [{ url: node.url }, { url: sound.url, priority: 1 }],
    limits: { pollMs: 50, probeMs: 100, timeoutMs: 1_000, stallMs: 400, patienceMs: 2_000 },
  })
  const set = (change: Partial<typeof faults>) => () => {
    const before = { ...faults }
    Object.assign(faults, change)
    return () => void Object.assign(faults, before)
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
      'fails with server errors': set({ status: 13 }),
      'is behind': set({ lag: 100 }),
      'returns invalid data': set({ garbled: true }),
      'has pruned its history': set({ lowest: 1_000 }),
      flaps: () => {
        const timer = setInterval(() => {
          faults.mode = faults.mode === 'up' ? 'down' : 'up'
        }, 100)
        return () => {
          clearInterval(timer)
          faults.mode = 'up'
        }
      },
    },
    stop: async () => {
      await chain.stop()
      await node.stop()
    },
  }
})

describeNodeFailures('of Polkadot', async () => {
  const node = await startPolkadotDevChain({ manual: true })
  node.mine(5)
  const sound = await node.serve()
  const { server } = node
  const chain = createPolkadotChain({
    upstreams: [{ url: node.node_url }, { url: sound.url, priority: 1 }],
    ...{ pollMs: 100, probeEveryMs: 200, requestTimeoutMs: 1_000, waitMs: 10_000 },
  })
  const mode = (failing: 'down' | 'hanging') => () => {
    server.setMode(failing)
    return () => server.setMode('up')
  }
  return {
    chain,
    mine: async (count) => void node.mine(count),
    failures: {
      'refuses connections': mode('down'),
      'does not answer': mode('hanging'),
      'returns invalid data': () => {
        server.tamper((method) => (method === 'chain_getBlock' ? { block: {} } : undefined))
        return () => server.tamper(undefined)
      },
      'has pruned its history': () => {
        server.prune(1_000)
        return () => server.prune(0)
      },
      flaps: () => {
        const timer = setInterval(() => server.dropConnections(), 100)
        return () => clearInterval(timer)
      },
    },
    stop: async () => {
      await chain.stop()
      await node.stop()
    },
  }
})
