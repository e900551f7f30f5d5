import { expect, test } from 'vitest'
import { createFakeClock } from '../../chains/evm/testing/fake-clock.ts'
import { createFakePool } from '../testing/fake-pool.ts'
import { createSyncing } from './syncing.ts'

const whole = {
  startingBlock: '0x1',
  currentBlock: '0x2',
  highestBlock: '0x3',
  pulledStates: '0x4',
  knownStates: '0x5',
}

test.each([
  [whole, whole],
  // geth of today has other counters, Erigon leaves out where it began.
  [
    { startingBlock: '0x1', currentBlock: '0x2', highestBlock: '0x3', syncedAccounts: '0x9' },
    { ...whole, pulledStates: '0x0', knownStates: '0x0' },
  ],
  [
    { currentBlock: '0x2', highestBlock: '0x3', stages: [] },
    { ...whole, startingBlock: '0x0', pulledStates: '0x0', knownStates: '0x0' },
  ],
  // geth 1.8.
  [
    Object.fromEntries(
      Object.entries(whole).map(([k, v]) => [k[0]?.toUpperCase() + k.slice(1), v]),
    ),
    whole,
  ],
])('the status has its five fields, for any answer of the node: %j', async (answered, status) => {
  const clock = createFakeClock()
  const pool = createFakePool()
  const values: unknown[] = []
  const syncing = createSyncing({
    pool,
    prefix: 'eth',
    clock,
    notify: (value) => values.push(JSON.parse(value)),
  })
  pool.answer = () => ({ ok: true, result: JSON.stringify(answered) })
  const release = syncing.need()
  await clock.advance(100)
  pool.answer = () => ({ ok: true, result: 'false' })
  await clock.advance(3_000)
  expect(values).toEqual([{ syncing: true, status }, false])
  release()
})
