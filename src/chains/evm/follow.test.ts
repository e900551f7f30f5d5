import { expect, test } from 'vitest'
import { systemClock } from '../../lib/clock.ts'
import type { ChainBlock } from '../chain.ts'
import { type FollowTools, follow } from './follow.ts'

const hashOf = (number: number) => Buffer.alloc(32, number)
const headerOf = (number: number) => ({
  number,
  hash: hashOf(number),
  parent_hash: hashOf(number - 1),
  time: 0,
})

test('a block that was fetched beside the first traced one, and is not traced, is fetched again', async () => {
  const asked: { number: number; isExpected: boolean | undefined }[] = []
  // The node loses its debug API after block 2.
  const tools: FollowTools = {
    pool: {
      onHead: () => () => {},
      head: () => ({ number: 4 }),
    } as unknown as FollowTools['pool'],
    clock: systemClock,
    fetchBlock: async (number, _, tracing) => {
      asked.push({ number, isExpected: tracing?.isExpected })
      const isTraced = number === 2
      const isLacking = !isTraced && tracing?.isExpected === true
      return { ...headerOf(number), isTraced, ...(isLacking && { lacks: 'x' }) } as ChainBlock
    },
    head: async () => headerOf(4),
    header: async (number) => headerOf(number),
    branchHashAt: () => undefined,
    ...{ pollMs: 1, inFlight: 4, patienceMs: 1 },
  }
  const stopping = new AbortController()
  const taken: (string | undefined)[] = []
  for await (const event of follow(tools, headerOf(0), stopping.signal)) {
    if (event.kind !== 'blocks') throw new Error(event.kind)
    for (const { number, lacks } of event.blocks) taken[number] = lacks ?? 'whole'
    if (taken.length > 4) break
  }
  // Before the first traced one nothing says that there is a node that traces.
  expect(taken.slice(1)).toEqual(['whole', 'whole', 'x', 'x'])
  expect(asked.filter(({ number }) => number === 3)).toEqual([
    { number: 3, isExpected: false },
    { number: 3, isExpected: true },
  ])
})
