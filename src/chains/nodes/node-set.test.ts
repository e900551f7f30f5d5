import { expect, it, onTestFinished } from 'vitest'
import { silentLog } from '../../lib/log.ts'
import { BlockMissingError, ChainUnavailableError, UnreadableError } from '../chain.ts'
import { createFakeClock } from '../evm/testing/fake-clock.ts'
import { type FaultKind, NodeFault } from './fault.ts'
import { createNodeRecord, type NodeConfig, type NodeRecord } from './node.ts'
import { createNodeSet, type NodeSetOptions } from './node-set.ts'

type Node = NodeRecord & {
  chain: string
  shown: number
  /** How the next calls end; the last one stays. */
  script: (FaultKind | 'ok' | NodeFault)[]
  probes: (FaultKind | 'ok' | 'hang')[]
  calls: number
}

const never = new AbortController().signal

const faultOf = (error: unknown): NodeFault => new NodeFault('down', String(error))

const next = <step>(steps: step[]): step => (steps.length > 1 ? steps.shift()! : steps[0]!)

const open = (configs: Partial<NodeConfig>[], options: Partial<NodeSetOptions<Node>> = {}) => {
  const clock = createFakeClock()
  const nodes = configs.map((config, index): Node => {
    const record = createNodeRecord(
      { url: `http://node-${index}/`, name: `node ${index}`, ...config },
      { transport: 'http' },
    )
    return Object.assign(record, {
      ...{ chain: 'ours', shown: 10, calls: 0 },
      script: ['ok' as const],
      probes: ['ok' as const],
    })
  })
  const set = createNodeSet<Node>({
    nodes,
    clock,
    log: silentLog,
    faultOf,
    ...{ timeoutMs: 1_000, waitMs: 2_000, maxLag: 5 },
    probe: async (node) => {
      const step = next(node.probes)
      if (step === 'hang') await new Promise(() => {})
      else if (step !== 'ok') throw new NodeFault(step, step)
      return { identity: node.chain, head: node.shown }
    },
    ...options,
  })
  onTestFinished(set.stop)
  const ask = (demand = {}): Promise<string> =>
    set.ask({
      what: 'question',
      demand,
      signal: never,
      ask: async (node) => {
        node.calls++
        const step = next(node.script)
        if (step instanceof NodeFault) throw step
        if (step !== 'ok') throw new NodeFault(step, step)
        return node.name
      },
    })
  /** Waits for an outcome while the time of the clock passes. */
  const settled = async <value>(promise: Promise<value>): Promise<value> => {
    let isOver = false
    const over = () => {
      isOver = true
    }
    promise.then(over, over)
    while (!isOver) await clock.advance(25)
    return await promise
  }
  return { set, nodes, clock, ask, settled }
}

it('asks the node with the lowest priority number first', async () => {
  const { ask } = open([{ priority: 1 }, { priority: 0 }])
  expect(await ask()).toBe('node 1')
})

it('asks the next node where one fails, and comes back after a growing pause', async () => {
  const { ask, nodes, clock } = open([{}, {}])
  nodes[0]!.script = ['down', 'down', 'ok']
  expect(await ask()).toBe('node 1')
  expect(await ask()).toBe('node 1')
  expect(nodes[0]!.calls).toBe(1)
  await clock.advance(600)
  // On trial again; it fails, and the pause doubles.
  expect(await ask()).toBe('node 1')
  expect(nodes[0]!.calls).toBe(2)
  await clock.advance(600)
  expect(await ask()).toBe('node 1')
  await clock.advance(600)
  expect(await ask()).toBe('node 0')
  expect(nodes[0]!.breaker.state()).toBe('closed')
})

it('repeats a question while every node fails, and gives up in time', async () => {
  const { ask, nodes, settled, clock } = open([{}])
  nodes[0]!.script = ['down', 'down', 'ok']
  expect(await settled(ask())).toBe('node 0')
  nodes[0]!.script = ['down']
  const begun = clock.now()
  await expect(settled(ask())).rejects.toThrow(ChainUnavailableError)
  expect(clock.now() - begun).toBeLessThanOrEqual(2_100)
})

it.each([
  ['with a Retry-After', new NodeFault('busy', 'slow down', 5_000), 5_000],
  ['without a Retry-After', new NodeFault('busy', 'slow down'), 500],
])('waits for the rate limit of a node %s', async (_, busy, pauseMs) => {
  const { ask, nodes, settled, clock } = open([{}])
  await ask()
  nodes[0]!.script = [busy, 'ok']
  const begun = clock.now()
  expect(await settled(ask())).toBe('node 0')
  expect(clock.now() - begun).toBeGreaterThanOrEqual(pauseMs)
  expect(nodes[0]!.calls).toBe(3)
})

it('asks another node instead of waiting for a rate limit', async () => {
  const { ask, nodes, clock } = open([{ requests_per_second: 2 }, { priority: 1 }])
  const begun = clock.now()
  const answers = [await ask(), await ask(), await ask(), await ask()]
  // The probe counts as well.
  expect(answers).toEqual(['node 0', 'node 1', 'node 1', 'node 1'])
  expect(clock.now()).toBe(begun)
  expect(nodes[0]!.calls).toBe(1)
})

it('reports data as missing only when every available node reports it', async () => {
  const { ask, nodes, settled } = open([{}, {}])
  nodes[0]!.script = ['missing']
  expect(await ask({ has: 3 })).toBe('node 1')
  nodes[1]!.script = ['missing']
  const error = await ask({ has: 3 }).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(BlockMissingError)
  expect(error).toMatchObject({ isCertain: true })
  nodes[1]!.script = ['down']
  const unsure = settled(ask({ has: 3 }))
  await expect(unsure).rejects.toThrow(ChainUnavailableError)
  await expect(unsure).rejects.not.toThrow(BlockMissingError)
})

it('is not certain that data is missing while a node is unreachable', async () => {
  const { ask, nodes } = open([{}, {}])
  nodes[0]!.script = ['missing']
  nodes[1]!.probes = ['down']
  await expect(ask({ has: 3 })).rejects.toMatchObject({
    name: 'BlockMissingError',
    isCertain: false,
  })
})

it('asks a node that has pruned a block last, until it has answered for one', async () => {
  const { ask, nodes } = open([{}, { priority: 1 }])
  nodes[0]!.script = ['missing', 'ok']
  expect(await ask({ has: 3 })).toBe('node 1')
  expect(await ask({ has: 3 })).toBe('node 1')
  expect(await ask({ has: 4 })).toBe('node 0')
})

it('throws UnreadableError where every node refuses', async () => {
  const { ask, nodes } = open([{}])
  nodes[0]!.script = ['refused']
  await expect(ask()).rejects.toThrow(UnreadableError)
})

it('asks a node that returned invalid data last for a long time', async () => {
  const { ask, nodes, clock, set } = open([{}, { priority: 1 }])
  nodes[0]!.script = ['invalid', 'ok']
  expect(await ask()).toBe('node 1')
  await clock.advance(60_000)
  expect(await ask()).toBe('node 1')
  expect(set.status()[0]).toMatchObject({ state: 'open_circuit', reason: 'invalid' })
  nodes[1]!.script = ['down']
  expect(await ask()).toBe('node 0')
  expect(set.status()[0]).toMatchObject({ state: 'degraded', reason: 'returned invalid data' })
})

it('does not ask a node that has not reached a block, and probes until one has', async () => {
  const { ask, nodes, settled } = open([{}, { priority: 1 }])
  nodes[1]!.shown = 20
  expect(await ask({ reached: 20 })).toBe('node 1')
  expect(nodes[0]!.calls).toBe(0)
  const waiting = ask({ reached: 30 })
  nodes[0]!.shown = 30
  expect(await settled(waiting)).toBe('node 0')
})

it('prefers nodes near the head', async () => {
  const { ask, nodes } = open([{}, { priority: 1 }])
  nodes[1]!.shown = 100
  await ask({ reached: 100 })
  expect(await ask()).toBe('node 1')
})

it('the first node in the configured order decides which chain it is, not the fastest', async () => {
  const { set, nodes } = open([{}, {}])
  nodes[1]!.chain = 'other'
  expect(await set.identity(never)).toBe('ours')
  expect(set.status().map(({ state }) => state)).toEqual(['healthy', 'wrong_chain'])
})

it('the next node decides where the first does not answer', async () => {
  const { set, nodes } = open([{}, {}])
  nodes[0]!.probes = ['down', 'ok']
  nodes[1]!.chain = 'other'
  expect(await set.identity(never)).toBe('other')
  await set.refresh(nodes[0]!, never).catch(() => {})
  expect(set.status()[0]!.state).toBe('wrong_chain')
})

it('never asks a node on another chain than the configured one', async () => {
  const { set, nodes, ask, settled } = open([{}], { isExpected: (identity) => identity === 'x' })
  await expect(settled(ask())).rejects.toThrow(ChainUnavailableError)
  expect(nodes[0]!.calls).toBe(0)
  expect(set.pinned()).toBeUndefined()
})

it('leaves out a node with another history, and its head', async () => {
  const { set, nodes, ask } = open([{}, { priority: 1 }])
  nodes[0]!.shown = 50
  await set.refresh(nodes[0]!, never)
  await set.refresh(nodes[1]!, never)
  expect(set.best()).toBe(50)
  set.exclude(nodes[0]!)
  expect(set.best()).toBe(10)
  expect(await ask()).toBe('node 1')
  expect(set.status()[0]).toMatchObject({ state: 'degraded', reason: 'has another history' })
  set.readmit()
  expect(await ask()).toBe('node 0')
})

it('a question ends with its signal while a node hangs', async () => {
  const { set, nodes } = open([{}])
  nodes[0]!.probes = ['hang']
  const controller = new AbortController()
  const asking = set.ask({
    what: 'question',
    signal: controller.signal,
    ask: async () => 'never',
  })
  controller.abort(new Error('enough'))
  await expect(asking).rejects.toThrow('enough')
})

it('notifies listeners of new heads, also of those that a node pushes', async () => {
  const { set, nodes } = open([{}, {}])
  let heads = 0
  set.onHead(() => heads++)
  await set.identity(never)
  set.showHead(nodes[0]!, 11)
  set.showHead(nodes[0]!, 11)
  set.showHead(nodes[1]!, 11)
  expect(set.best()).toBe(11)
  expect(heads).toBe(2)
})

it('discards the answers of a node when its connection ends', async () => {
  const { set, nodes, ask } = open([{}, { priority: 1 }])
  await ask()
  set.lose(nodes[0]!, 'connection closed')
  expect(set.status()[0]).toMatchObject({ state: 'unreachable', reason: 'connection closed' })
  expect(await ask()).toBe('node 1')
})

it('describes every node with the same fields', async () => {
  const { set, nodes, ask } = open([{}])
  for (let call = 0; call < 20; call++) await ask()
  nodes[0]!.script = ['down', 'ok']
  await set.refreshAny(never)
  expect(set.status()).toEqual([
    {
      name: 'node 0',
      transport: 'http',
      state: 'healthy',
      reason: '',
      chain_id: 'ours',
      client_version: '',
      head: 10,
      lag: 0,
      latency_ms: { p50: 0, p95: 0 },
      error_rate: 0,
      breaker: 'closed',
      capabilities: [],
      requests: 22,
      errors: 0,
      latencies: expect.any(Function),
    },
  ])
})
