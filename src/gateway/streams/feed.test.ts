import { describe, expect, onTestFinished, test } from 'vitest'
import { createCanonical } from '../../chains/evm/canonical/canonical.ts'
import type { Head, Pool } from '../../chains/evm/pool/pool-types.ts'
import { createFakeClock } from '../../chains/evm/testing/fake-clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import type { Dispatch, OnAnswer } from '../rpc/answer.ts'
import { createWorld, type WorldBlock } from '../testing/feed-world.ts'
import { createStreams } from './feed-streams.ts'
import { createFilterBudget } from './filter-budget.ts'
import type { Session } from './session.ts'

const session = { principal: { credential_id: 'key' } } as Session

const setUp = (options: { pool?: Partial<Pool>; nodes?: number; forgets?: boolean } = {}) => {
  const world = createWorld(options)
  const clock = createFakeClock()
  const pool = { ...world.pool, ...options.pool }
  const canonical = createCanonical({ pool, prefix: 'eth', clock, log: silentLog })
  onTestFinished(canonical.stop)
  const streams = createStreams({
    pool,
    canonical,
    prefix: 'eth',
    clock,
    log: silentLog,
    ids: systemIds,
    encode: (text) => Buffer.from(text, 'latin1'),
    subscriptionsPerKey: 100,
    filtersPerKey: 100,
    budget: createFilterBudget({ perKey: 1_000_000, perOrganization: 1_000_000 }),
  })
  onTestFinished(streams.stop)
  // biome-ignore lint/suspicious/noExplicitAny: the answer to any call
  const call = (dispatch: Dispatch, method: string, ...args: unknown[]): Promise<any> =>
    new Promise((resolve) => {
      const done: OnAnswer = ({ text }) => resolve(JSON.parse(text))
      const name = `eth_${method}`
      dispatch({ name } as never, { method: name, args } as never, session, done)
    })
  const connect = () => {
    const received: string[] = []
    const client = streams.open(
      {
        push: (frame) => {
          const { result } = JSON.parse(frame.toString()).params
          received.push(result.hash ?? result.blockHash ?? result)
        },
        close: (code, reason) => {
          received.push(`closed ${code}: ${reason}`)
          client.stop()
        },
      },
      { organization_id: 'o', credential_id: 'key' },
    )
    return {
      received,
      subscribe: (name: string) => call(client.dispatch, 'subscribe', name, {}),
      unsubscribe: (id: string) => call(client.dispatch, 'unsubscribe', id),
      stop: client.stop,
    }
  }
  const mine = (count: number, from: WorldBlock, logs = false): WorldBlock[] => {
    const blocks: WorldBlock[] = []
    for (let left = count; left > 0; left--)
      blocks.push(
        world.mine(
          blocks.at(-1) ?? from,
          logs ? [{ address: `0x${'1'.repeat(40)}`, topics: [] }] : [],
        ),
      )
    return blocks
  }
  return {
    world,
    clock,
    streams,
    connect,
    mine,
    node: world.nodes[0] as (typeof world.nodes)[0],
    filter: (method: string, ...args: unknown[]) => call(streams.filters.dispatch, method, ...args),
  }
}

const headOf = ({ number, hash, parent }: WorldBlock): Head => ({
  number,
  hash,
  parent_hash: parent,
  timestamp: number,
})
const hashes = (blocks: readonly WorldBlock[]) => blocks.map(({ hash }) => hash)

describe('a block after the answer to subscribe is delivered', () => {
  test('where the feed begins with that subscription', async () => {
    const { world, node, clock, connect, mine } = setUp()
    const client = connect()
    const [before, ...after] = mine(3, world.genesis) as [WorldBlock, ...WorldBlock[]]
    world.show(node, before)
    await client.subscribe('newHeads')
    for (const block of after) world.show(node, block)
    await clock.advance(1_000)
    expect(client.received).toEqual(hashes(after))
  })

  test('where the feed was idle for long, and nothing of what happened meanwhile', async () => {
    const { world, node, clock, connect, mine } = setUp()
    const client = connect()
    const first = await client.subscribe('newHeads')
    await client.unsubscribe(first)
    await clock.advance(120_000)
    const [before, ...after] = mine(3, world.genesis) as [WorldBlock, ...WorldBlock[]]
    world.show(node, before)
    await client.subscribe('newHeads')
    world.show(node, after[0] as WorldBlock)
    await clock.advance(1_000)
    world.show(node, after[1] as WorldBlock)
    await clock.advance(1_000)
    expect(client.received).toEqual(hashes(after))
  })

  test.each(['newHeads', 'newBlockFilter'])(
    'where no node had shown a head yet, by %s',
    async (how) => {
      const late: { head?: Head } = {}
      const { world, node, clock, connect, mine, filter } = setUp({
        pool: { head: () => late.head },
      })
      const client = connect()
      const isFilter = how === 'newBlockFilter'
      const blocks = mine(3, world.genesis)
      const expected: string[] = []
      const show = async (block: WorldBlock) => {
        late.head = headOf(block)
        world.show(node, block)
        if (isAnswered) expected.push(block.hash)
        await clock.advance(1_000)
      }
      let isAnswered = false
      const answer = isFilter ? filter(how) : client.subscribe(how)
      void answer.then(() => {
        isAnswered = true
      })
      await clock.advance(500)
      for (const block of blocks) await show(block)
      const got = isFilter ? await filter('getFilterChanges', await answer) : client.received
      expect(got).toEqual(expected)
      expect(expected.length).toBeGreaterThanOrEqual(2)
    },
  )

  test('where the only node has just gone back', async () => {
    const stale: { head?: Head } = {}
    const { world, node, clock, connect, mine } = setUp({
      forgets: true,
      pool: { head: () => stale.head },
    })
    const old = mine(5, world.genesis)
    world.show(node, old[4] as WorldBlock)
    await clock.advance(0)
    // The pool does not take its word back at once.
    stale.head = headOf(old[4] as WorldBlock)
    world.show(node, old[0] as WorldBlock)
    const client = connect()
    await client.subscribe('newHeads')
    const next = mine(2, old[0] as WorldBlock)
    for (const block of next) {
      world.show(node, block)
      await clock.advance(3_000)
    }
    expect(client.received).toEqual(hashes(next))
  })
})

test('a subscription is refused when no node shows a head in time', async () => {
  const { clock, connect, streams, filter } = setUp({ pool: { head: () => undefined } })
  const client = connect()
  const answers = Promise.all([client.subscribe('logs'), filter('newFilter', {})])
  await clock.advance(20_000)
  expect(await answers).toEqual([
    expect.objectContaining({ code: -32603 }),
    expect.objectContaining({ code: -32603 }),
  ])
  expect([streams.subscriptions.size(), streams.filters.size()]).toEqual([0, 0])
})

test('a client that leaves before its subscription was answered has none', async () => {
  const late: { head?: Head } = {}
  const { world, clock, connect, streams } = setUp({ pool: { head: () => late.head } })
  const client = connect()
  void client.subscribe('logs')
  client.stop()
  late.head = headOf(world.genesis)
  await clock.advance(20_000)
  expect(streams.subscriptions.size()).toBe(0)
})

describe('where the logs of a block are not to be had', () => {
  const setUpBroken = () => {
    const own: { request?: Pool['request']; isBroken?: boolean } = {}
    const parts = setUp({
      pool: {
        request: async (call) =>
          own.isBroken && call.method === 'eth_getLogs'
            ? { failure: 'TIMEOUT' }
            : (own.request as Pool['request'])(call),
      },
    })
    own.request = parts.world.pool.request
    return { ...parts, own }
  }

  test('headers continue when the only reader of logs leaves', async () => {
    const { world, node, clock, connect, mine, own } = setUpBroken()
    const heads = connect()
    await heads.subscribe('newHeads')
    const logs = connect()
    const id = await logs.subscribe('logs')
    const blocks = mine(4, world.genesis, true)
    own.isBroken = true
    world.show(node, blocks[3] as WorldBlock)
    await clock.advance(2_000)
    await logs.unsubscribe(id)
    await clock.advance(5_000)
    expect(heads.received).toEqual(hashes(blocks))
  })

  test('their waiters end after a while, and no others', async () => {
    const { world, node, clock, connect, mine, filter, own } = setUpBroken()
    const heads = connect()
    await heads.subscribe('newHeads')
    const logs = connect()
    await logs.subscribe('logs')
    const id = await filter('newFilter', {})
    const blocks = mine(3, world.genesis, true)
    own.isBroken = true
    world.show(node, blocks[2] as WorldBlock)
    await clock.advance(120_000)
    expect(heads.received).toEqual(hashes(blocks))
    expect(logs.received).toEqual([expect.stringMatching(/^closed 1013: /)])
    expect(await filter('getFilterChanges', id)).toMatchObject({ message: 'filter not found' })
  })
})

test('a chain that begins anew far below ends the subscriptions', async () => {
  const { world, node, clock, connect, mine } = setUp({ forgets: true })
  const old = mine(400, world.genesis)
  world.show(node, old[399] as WorldBlock)
  const client = connect()
  await client.subscribe('newHeads')
  await clock.advance(10_000)
  const other = mine(2, world.genesis)
  world.show(node, other[1] as WorldBlock)
  await clock.advance(10_000)
  expect(client.received).toEqual([expect.stringMatching(/^closed 1013: /)])
})
