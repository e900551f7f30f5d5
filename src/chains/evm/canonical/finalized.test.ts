import { expect, test } from 'vitest'
import type { Head, PoolOutcome } from '../pool/pool-types.ts'
import { createFakeClock } from '../testing/fake-clock.ts'
import { createFinalized } from './finalized.ts'

const hash = `0x${'ab'.repeat(32)}`
const block = JSON.stringify({ number: '0x20', hash, parentHash: hash, timestamp: '0x1' })

const setup = () => {
  const clock = createFakeClock()
  const found: Head[] = []
  const outcomes: PoolOutcome[] = []
  let asked = 0
  const finalized = createFinalized({
    pool: {
      request: async () => {
        asked++
        return outcomes.shift() ?? { failure: 'NO_UPSTREAM' }
      },
    },
    prefix: 'eth',
    clock,
    signal: new AbortController().signal,
    found: (head) => found.push(head),
  })
  return { clock, found, outcomes, finalized, asked: () => asked }
}

test('the block under the tag is reported, and the nodes are not asked at every head', async () => {
  const { clock, found, outcomes, finalized, asked } = setup()
  outcomes.push({ ok: true, result: block })
  expect(finalized.exists()).toBeUndefined()
  for (let head = 0; head < 5; head++) finalized.look()
  await clock.advance(0)
  expect([asked(), finalized.exists(), found.map(({ number }) => number)]).toEqual([1, true, [32]])
  await clock.advance(10_000)
  finalized.look()
  await clock.advance(0)
  // No node answered: the chain keeps its tag.
  expect([asked(), finalized.exists()]).toEqual([2, true])
})

test('a chain that answers the tag with an error or null has none', async () => {
  for (const outcome of [
    { ok: false as const, error: '{"code":-32602,"message":"invalid argument"}' },
    { ok: true as const, result: 'null' },
  ]) {
    const { clock, found, outcomes, finalized } = setup()
    outcomes.push(outcome)
    finalized.look()
    await clock.advance(0)
    expect([finalized.exists(), found]).toEqual([false, []])
  }
})
