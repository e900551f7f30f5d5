import { afterEach, beforeEach, expect, test } from 'vitest'
import { waitFor } from '../../../../test/helpers/wait-for.ts'
import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import { type StubNode, startStub } from '../testing/stub-node.ts'
import { type ChangeablePool, createPool } from './pool.ts'
import type { PoolOutcome } from './pool-types.ts'

let nodes: StubNode[] = []
let pool: ChangeablePool

beforeEach(async () => {
  nodes = await Promise.all([startStub('one'), startStub('two'), startStub('three')])
  pool = createPool({
    ...{ network: 'test', prefix: 'eth', clock: systemClock, log: silentLog },
    upstreams: [{ url: nodes[0]!.url }],
  })
  await waitFor('the first node', () => pool.status()[0]?.state === 'healthy')
})

afterEach(async () => {
  await pool.stop()
  await Promise.all(nodes.map((node) => node.stop()))
})

const ask = (): Promise<PoolOutcome> =>
  pool.request({ method: 'eth_call', params: '[]', idempotent: true, timeoutMs: 5_000 })

const nameIn = (outcome: PoolOutcome): unknown =>
  'ok' in outcome && outcome.ok ? JSON.parse(outcome.result).name : outcome

const names = () => pool.status().map(({ name }) => name)

test('calls continue while all nodes are replaced, and end at the new one', async () => {
  const answers: unknown[] = []
  let isOver = false
  const load = async () => {
    while (!isOver) answers.push(nameIn(await ask()))
  }
  const working = Promise.all([load(), load(), load(), load()])
  await pool.change([{ url: nodes[0]!.url }, { url: nodes[1]!.url }])
  expect(names()).toHaveLength(2)
  await pool.change([{ url: nodes[2]!.url }])
  expect(names()).toHaveLength(1)
  expect(nameIn(await ask())).toBe('three')
  isOver = true
  await working
  expect(answers.filter((name) => !['one', 'two', 'three'].includes(String(name)))).toEqual([])
  const calls = () => nodes[0]!.methods.filter((method) => method === 'eth_call').length
  const asked = calls()
  await ask()
  await ask()
  expect(calls()).toBe(asked)
})

test('a node with the same settings stays, with what is known of it', async () => {
  const before = pool.status()[0]!
  await pool.change([{ url: nodes[1]!.url }, { url: nodes[0]!.url }])
  const [, kept] = pool.status()
  expect(kept).toMatchObject({ name: before.name, state: 'healthy' })
  expect(kept!.requests).toBeGreaterThanOrEqual(before.requests)
})

test('nodes are compared with the canonical tip, also when the node that showed it is removed', async () => {
  const { head } = nodes[1]!
  const tip = { number: head + 5, hash: '0x', parent_hash: '0x', timestamp: 0 }
  pool.compareWith(() => tip)
  nodes[0]!.head = tip.number
  await waitFor('the head of the first', () => pool.head()?.number === tip.number)
  await pool.change([{ url: nodes[1]!.url }])
  await waitFor('the second is healthy', () => pool.status()[0]?.head === head)
  expect(pool.head()?.number).toBe(head)
  expect(pool.status()[0]?.lag).toBe(5)
  tip.number = head
  expect(pool.status()[0]?.lag).toBe(0)
})

test('a new node of another chain is not used, and an old one leaves though the new one is unreachable', async () => {
  nodes[1]!.chainId = 999
  await pool.change([{ url: nodes[0]!.url }, { url: nodes[1]!.url }])
  await waitFor('the wrong chain is seen', () => pool.status()[1]?.chain_id === 999)
  expect(nameIn(await ask())).toBe('one')
  await pool.change([{ url: 'http://127.0.0.1:9' }])
  expect(names()).toHaveLength(1)
})
