import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createCanonical } from '../../chains/evm/canonical/canonical.ts'
import { createFakeClock } from '../../chains/evm/testing/fake-clock.ts'
import { systemIds } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import {
  createWorld,
  type LogOrigin,
  logsOf,
  type WorldBlock,
  type WorldLog,
} from '../testing/feed-world.ts'
import { createStreams } from './feed-streams.ts'
import { createFilterBudget } from './filter-budget.ts'
import type { Session } from './session.ts'

const addresses = [1, 2, 3].map((value) => `0x${value.toString(16).padStart(40, '0')}`)
const topics = [1, 2, 3].map((value) => `0x${value.toString(16).padStart(64, '0')}`)

const log: fc.Arbitrary<WorldLog> = fc.record({
  address: fc.constantFrom(...addresses),
  topics: fc.array(fc.constantFrom(...topics), { maxLength: 3 }),
})
const position = fc.oneof(
  fc.constant(null),
  fc.constantFrom(...topics),
  fc.uniqueArray(fc.constantFrom(...topics), { maxLength: 2 }),
)
const filter = fc.record(
  {
    address: fc.oneof(
      fc.constantFrom(...addresses),
      fc.uniqueArray(fc.constantFrom(...addresses), { maxLength: 2 }),
    ),
    topics: fc.array(position, { maxLength: 3 }),
  },
  { requiredKeys: [] },
)
type Filter = {
  address?: string | string[]
  topics?: (string | null | string[])[]
  fromBlock?: string
}
/** Some begin later: soon, or beyond the blocks that one step adds. */
const ahead = fc.option(
  fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 60, max: 80 })),
  {
    nil: undefined,
  },
)

const blocks = fc.array(fc.array(log, { maxLength: 3 }), { minLength: 1, maxLength: 5 })
const step = fc.oneof(
  fc.record({ kind: fc.constant('extend' as const), blocks }),
  fc.record({
    kind: fc.constant('reorg' as const),
    depth: fc.integer({ min: 1, max: 64 }),
    blocks,
  }),
  fc.record({ kind: fc.constant('rollback' as const), depth: fc.integer({ min: 1, max: 5 }) }),
  fc.record({ kind: fc.constant('back' as const) }),
  fc.record({ kind: fc.constant('subscribe' as const), filter, ahead }),
  fc.record({ kind: fc.constant('filter' as const), filter, ahead }),
  // The nodes come back with many blocks at once.
  fc.record({ kind: fc.constant('leap' as const), by: fc.integer({ min: 55, max: 85 }), blocks }),
  fc.record({ kind: fc.constant('poll' as const) }),
  fc.record({ kind: fc.constant('leave' as const), index: fc.nat(5) }),
  fc.record({ kind: fc.constant('lag' as const), behind: fc.integer({ min: 1, max: 5 }) }),
  fc.record({ kind: fc.constant('die' as const) }),
  // Announced before or after it is in a block, by one node or by both.
  fc.record({
    kind: fc.constant('transactions' as const),
    order: fc.array(fc.constantFrom('announce' as const, 'mine' as const), {
      minLength: 1,
      maxLength: 6,
    }),
    twice: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('stutter' as const), failures: fc.integer({ min: 1, max: 6 }) }),
)

/** The table of spec 4.5, said once more and as plainly as possible. */
const fits = ({ address = [], topics: wanted = [] }: Filter, one: WorldLog): boolean => {
  const list = [address].flat()
  if (list.length > 0 && !list.includes(one.address)) return false
  return wanted.every((topic, index) => {
    if (index >= one.topics.length) return false
    const any = topic === null || topic.length === 0
    return any || [topic].flat().includes(one.topics[index] as string)
  })
}

/** What one listener must get, from the blocks that were sent to it. */
type Reader = {
  filter: Filter
  kind: 'heads' | 'logs' | 'pending'
  seen: Set<string>
  expected: string[]
}

const line = (block: WorldBlock, index: number, removed: boolean) =>
  `${removed ? 'removed' : 'log'} ${block.number} ${block.hash} ${index}`

const notifyModel = (reader: Reader, removed: WorldBlock[], added: WorldBlock[]) => {
  const logs = (block: WorldBlock, isRemoved: boolean) => {
    if (block.number < Number(reader.filter.fromBlock ?? 0)) return
    for (const [index, one] of block.logs.entries())
      if (fits(reader.filter, one)) reader.expected.push(line(block, index, isRemoved))
  }
  if (reader.kind === 'pending') {
    const again = new Set(removed.flatMap(({ transactions }) => transactions))
    for (const hash of added.flatMap(({ transactions }) => transactions)) again.delete(hash)
    for (const hash of again) reader.expected.push(`pending ${hash}`)
    return
  }
  for (const block of removed) if (reader.seen.delete(block.hash)) logs(block, true)
  for (const block of added) {
    reader.seen.add(block.hash)
    if (reader.kind === 'heads') reader.expected.push(`head ${block.number} ${block.hash}`)
    logs(block, false)
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a notification or change of any kind
const toLine = (result: any, kind: Reader['kind'], world: ReturnType<typeof createWorld>) => {
  if (kind === 'pending') return `pending ${result}`
  if (typeof result === 'string') return `head ${world.get(result).number} ${result}`
  if (result.removed === undefined) return `head ${Number(result.number)} ${result.hash}`
  const { removed, ...rest } = result
  const block = world.get(result.blockHash)
  const index = Number(result.logIndex)
  expect({ ...rest, removed: false }).toEqual(logsOf(block)[index])
  return line(block, index, removed)
}

const kinds: Record<string, Reader['kind']> = {
  newHeads: 'heads',
  newBlockFilter: 'heads',
  logs: 'logs',
  newFilter: 'logs',
  newPendingTransactions: 'pending',
  newPendingTransactionFilter: 'pending',
}

// The fast gate takes a sample; FEED_SCRIPTS=500 runs them all.
const scripts = Number(process.env.FEED_SCRIPTS ?? 120)

test('what clients get is what the model says, for every seeded script', {
  timeout: 300_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 3, maxLength: 14 }),
      fc.boolean(),
      fc.integer({ min: 1, max: 70 }),
      fc.constantFrom<LogOrigin>('transactions', 'blocks', 'blocks beside the bloom'),
      async (steps, forgets, history, origin) => {
        const world = createWorld({ nodes: 2, forgets, origin })
        const [a, b] = world.nodes as [(typeof world.nodes)[0], (typeof world.nodes)[0]]
        const clock = createFakeClock()
        const streams = createStreams({
          pool: world.pool,
          canonical: createCanonical({ pool: world.pool, prefix: 'eth', clock, log: silentLog }),
          prefix: 'eth',
          clock,
          log: silentLog,
          ids: systemIds,
          encode: (text) => Buffer.from(text, 'latin1'),
          subscriptionsPerKey: 100,
          filtersPerKey: 100,
          budget: createFilterBudget({ perKey: 1_000_000, perOrganization: 1_000_000 }),
        })
        const session = { principal: { credential_id: 'key' } } as Session
        // biome-ignore lint/suspicious/noExplicitAny: the answer to any call
        const call = async (dispatch: any, method: string, ...args: unknown[]) =>
          new Promise<string>((resolve) =>
            dispatch(
              { name: `eth_${method}` },
              { method: `eth_${method}`, args },
              session,
              (answer: { text: string }) => resolve(JSON.parse(answer.text)),
            ),
          )

        let tip = world.genesis
        let transactions = 0
        const isOn = (block: WorldBlock, head: WorldBlock) => {
          let at: WorldBlock | undefined = head
          while (at && at.number > block.number) at = world.get(at.parent)
          return at === block
        }
        const ancestor = (block: WorldBlock, depth: number) => {
          let at = block
          for (let left = depth; left > 0 && at !== world.genesis; left--) at = world.get(at.parent)
          return at
        }
        const branch = (from: WorldBlock, logs: WorldLog[][]) =>
          logs.reduce((parent, own) => world.mine(parent, own), from)
        const readers: { reader: Reader; got: () => Promise<string[]>; leave: () => unknown }[] = []
        const goTo = (next: WorldBlock) => {
          const removed: WorldBlock[] = []
          for (let at = tip; !isOn(at, next); at = world.get(at.parent)) removed.unshift(at)
          const added: WorldBlock[] = []
          const base = removed[0] ? world.get(removed[0].parent) : tip
          for (let at = next; at !== base; at = world.get(at.parent)) added.unshift(at)
          for (const { reader } of readers) notifyModel(reader, removed, added)
          tip = next
        }
        const connect = () => {
          const received: { subscription: string; result: unknown }[] = []
          const closed: string[] = []
          const subscriber = {
            push: (frame: Buffer) => received.push(JSON.parse(frame.toString()).params),
            close: (_: number, reason: string) => closed.push(reason),
          }
          return {
            received,
            closed,
            client: streams.open(subscriber, { organization_id: 'o', credential_id: 'key' }),
          }
        }
        const main = connect()
        const subscribe = async (name: string, options: Filter) => {
          const id = await call(main.client.dispatch, 'subscribe', name, options)
          const reader = {
            filter: options,
            kind: kinds[name] as Reader['kind'],
            seen: new Set<string>(),
            expected: [],
          }
          if (name === 'newHeads') reader.filter = { address: `0x${'f'.repeat(40)}` }
          readers.push({
            reader,
            got: async () =>
              main.received
                .filter(({ subscription }) => subscription === id)
                .map(({ result }) => toLine(result, reader.kind, world)),
            leave: () => call(main.client.dispatch, 'unsubscribe', id),
          })
        }
        const makeFilter = async (method: string, ...args: unknown[]) => {
          const id = await call(streams.filters.dispatch, method, ...args)
          const got: string[] = []
          const kind = kinds[method] as Reader['kind']
          const poll = async () => {
            const changes = await call(streams.filters.dispatch, 'getFilterChanges', id)
            for (const change of changes) got.push(toLine(change, kind, world))
            return got
          }
          const own = (args[0] ?? { address: `0x${'f'.repeat(40)}` }) as Filter
          readers.push({
            reader: { filter: own, kind, seen: new Set(), expected: [] },
            got: poll,
            leave: () => call(streams.filters.dispatch, 'uninstallFilter', id),
          })
        }

        const first = branch(
          world.genesis,
          Array.from({ length: history }, () => []),
        )
        tip = first
        world.show(a, first)
        world.show(b, first)
        // The chain begins where the nodes are.
        await clock.advance(0)
        await subscribe('newHeads', {})
        await makeFilter('newBlockFilter')
        await subscribe('logs', {})
        await makeFilter('newFilter', {})
        await subscribe('newPendingTransactions', {})
        await makeFilter('newPendingTransactionFilter')
        await clock.advance(10_000)

        const later = ({ filter, ahead }: { filter: Filter; ahead: number | undefined }): Filter =>
          ahead === undefined
            ? filter
            : { ...filter, fromBlock: `0x${(tip.number + ahead).toString(16)}` }

        for (const one of steps) {
          const previous = tip
          switch (one.kind) {
            case 'extend':
              goTo(branch(tip, one.blocks))
              break
            case 'leap': {
              const empty = Array.from({ length: one.by }, () => [])
              goTo(branch(tip, [...empty, ...one.blocks]))
              break
            }
            case 'reorg': {
              const depth = Math.min(one.depth, tip.number - world.genesis.number)
              goTo(branch(ancestor(tip, depth), one.blocks))
              break
            }
            case 'rollback':
              goTo(ancestor(tip, one.depth))
              break
            case 'back':
              // There and back again: the same blocks come a second time.
              world.show(a, ancestor(tip, 1))
              world.show(b, ancestor(tip, 1))
              goTo(ancestor(tip, 1))
              await clock.advance(5_000)
              goTo(previous)
              break
            case 'subscribe':
              await subscribe('logs', later(one))
              break
            case 'filter':
              await makeFilter('newFilter', later(one))
              break
            case 'poll':
              for (const { got } of readers) await got()
              break
            case 'leave': {
              if (readers.length <= 6) break
              const [gone] = readers.splice(6 + (one.index % (readers.length - 6)), 1)
              expect(await gone?.got()).toEqual(gone?.reader.expected)
              await gone?.leave()
              break
            }
            case 'lag':
              // It never showed more than it shows now: no reason to take anything back.
              world.show(b, ancestor(tip, one.behind))
              await clock.advance(3_000)
              break
            case 'die':
              // The node in front dies while its new branch is being fetched.
              goTo(branch(ancestor(tip, 2), [[], [], []]))
              world.show(a, tip)
              a.isLive = false
              await clock.advance(300)
              world.show(b, tip)
              await clock.advance(5_000)
              a.isLive = true
              break
            case 'transactions': {
              const hash = `0x7e${(++transactions).toString(16).padStart(62, '0')}`
              let isAnnounced = false
              let isMined = false
              for (const act of one.order) {
                if (act === 'announce') {
                  for (let left = one.twice ? 2 : 1; left > 0; left--) world.announce(hash)
                  if (!isAnnounced)
                    for (const { reader } of readers)
                      if (reader.kind === 'pending') reader.expected.push(`pending ${hash}`)
                  isAnnounced = true
                } else if (!isMined) {
                  isMined = true
                  goTo(world.mine(tip, [], [hash]))
                  world.show(a, tip)
                  world.show(b, tip)
                  await clock.advance(1_000)
                }
              }
              break
            }
            case 'stutter':
              a.failures = one.failures
              b.failures = one.failures
              goTo(branch(tip, [[{ address: addresses[0] as string, topics: [] }]]))
              world.show(a, tip)
              world.show(b, tip)
              // Logs that are not in the bloom are believed after eight attempts.
              await clock.advance(6_000)
              break
          }
          world.show(a, tip)
          world.show(b, tip)
          // Each block is sent in a turn of its own.
          for (let blocks = 128; blocks > 0; blocks--) await nextTurn()
          await clock.advance(6_000)
          expect(streams.feed.tip()?.hash).toBe(tip.hash)
        }
        for (const { reader, got } of readers) expect(await got()).toEqual(reader.expected)
        expect(main.closed).toEqual([])
        streams.stop()
      },
    ),
    { numRuns: scripts, seed: 20_261_115 },
  )
})
