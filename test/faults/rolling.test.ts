import { expect, it } from 'vitest'
import { hasBalancer, runRolling } from './rolling.ts'

it('rolling restarts behind a load balancer fail no request', async (context) => {
  if (!(await hasBalancer('haproxy'))) {
    if (process.env.CI) throw new Error('there is no haproxy here, and it cannot be installed')
    context.skip()
  }
  const outcome = await runRolling({ balancer: 'haproxy', requests: 2_000, restarts: 2 })
  expect(outcome.failures).toEqual([])
  expect(outcome.requests).toBeGreaterThanOrEqual(2_000)
}, 300_000)
