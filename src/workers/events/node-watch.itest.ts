import { expect, test } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import type { NodeState } from '../../chains/nodes/status.ts'
import { silentLog } from '../../lib/log.ts'
import { startNodeWatch } from './node-watch.ts'

const { db, pool } = await freshDatabase()

test('a lost node is recorded once it stays lost, and resolved once it stays back', async () => {
  let state: NodeState = 'healthy'
  let time = 1_800_000_000_000
  const looks: (() => void)[] = []
  const clock = {
    now: () => time,
    // Each look of the watch is one turn of the test.
    sleep: (_ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        looks.push(resolve)
        signal?.addEventListener('abort', () => reject(signal.reason))
      }),
  }
  const nodes = () => [
    {
      chain: 'c',
      network: 'mainnet',
      upstreams: [{ name: 'n1', state, reason: 'refused' } as never],
    },
  ]
  const watch = startNodeWatch({ db, log: silentLog, clock: clock as never, nodes })
  const look = async (ms: number, next: NodeState) => {
    await expect.poll(() => looks.length).toBe(1)
    time += ms
    state = next
    looks.pop()!()
    await expect.poll(() => looks.length).toBe(1)
    const { rows } = await pool.query(
      `select resolve_time is null as open, detail from operational_event where kind = 'node_lost' order by create_time`,
    )
    return rows.map(({ open }) => (open ? 'open' : 'resolved'))
  }
  expect(await look(5_000, 'unreachable')).toEqual([])
  expect(await look(5_000, 'healthy')).toEqual([])
  expect(await look(5_000, 'unreachable')).toEqual([])
  expect(await look(30_000, 'open_circuit')).toEqual(['open'])
  expect(await look(30_000, 'unreachable')).toEqual(['open'])
  expect(await look(5_000, 'healthy')).toEqual(['open'])
  expect(await look(30_000, 'degraded')).toEqual(['resolved'])
  expect(await look(60_000, 'healthy')).toEqual(['resolved'])
  await watch.stop()
})
