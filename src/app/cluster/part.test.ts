import { availableParallelism } from 'node:os'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../config/load.ts'
import type { Overrides } from '../config/schema.ts'
import { growsByItself, partConfig, workersOf, workersWithin } from './part.ts'

const load = (overrides: Overrides = {}) => loadConfig({ env: {}, cwd: '/', overrides })
const plan = {
  ...{ name: 'worker-1', slot: 1, roles: ['api', 'gateway'] as const, shares: 4, callers: 5 },
}

describe('the number of workers', () => {
  it('is as configured, and one where no requests are served', () => {
    expect(workersOf(load({ server: { workers: 1 } }))).toBe(1)
    expect(workersOf(load({ server: { workers: 3 } }))).toBe(3)
    expect(workersOf(load({ server: { workers: 3, roles: ['tracker', 'courier'] } }))).toBe(1)
  })

  it('is by default the number of cores, at most 8', () => {
    expect(workersOf(load())).toBe(Math.min(8, availableParallelism()))
    expect(growsByItself(load())).toBe(process.platform === 'linux')
    expect(growsByItself(load({ server: { workers: 2 } }))).toBe(false)
  })

  it('is limited by the memory that is free when the service grows', () => {
    const gigabyte = 1024 ** 3
    expect(workersWithin(8, 16 * gigabyte)).toBe(8)
    expect(workersWithin(8, gigabyte)).toBe(3)
    expect(workersWithin(8, gigabyte / 4)).toBeLessThan(2)
  })
})

describe('the configuration of one of four workers', () => {
  it('has a fourth of what bounds the whole service, and all of what bounds a client', () => {
    const whole = load({ server: { workers: 4 } })
    const part = partConfig(whole, plan, 4000)
    expect(part.server).toMatchObject({
      ...{ port: 4000, roles: ['api', 'gateway'], workers: 1, admin_listen: 'off' },
      connections_limit: whole.server.connections_limit / 4,
      body_bytes_limit: whole.server.body_bytes_limit / 4,
      connections_per_address: whole.server.connections_per_address,
    })
    expect(part.gateway.cache_bytes).toBe(whole.gateway.cache_bytes / 4)
    expect(part.database.pool_size).toBe(4)
    expect(part.security.auth_failures_burst * 4).toBeLessThan(
      whole.security.auth_failures_burst + 4,
    )
    expect(part.limits.replicas).toBe(1)
  })

  it('has a part of the rate of calls to a node, which all processes share', () => {
    const upstreams = [{ url: 'http://a.example', rate_limit_per_second: 10 }]
    const config = load({ chains: { c: { networks: { mainnet: { upstreams } } } } })
    const { networks } = partConfig(config, plan, 4000).chains.c!
    expect(networks.mainnet!.upstreams).toMatchObject([{ rate_limit_per_second: 2 }])
  })

  it('counts as one of four replicas while Redis is unreachable', () => {
    const config = load({ redis: { url: 'redis://127.0.0.1' }, limits: { replicas: 2 } })
    expect(partConfig(config, plan, 4000).limits.replicas).toBe(8)
  })
})
