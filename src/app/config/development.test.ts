import { describe, expect, it } from 'vitest'
import { endpointRules } from '../webhooks.ts'
import { developmentWarning, hasDevelopmentRules, wantsLocalChains } from './development.ts'
import { loadConfig } from './load.ts'
import type { Env } from './problem.ts'
import { loadText } from './testing/fixture.ts'

const load = (env: Env = {}) => loadConfig({ env, cwd: '/' })
const database = { DATABASE_URL: 'postgres://localhost/portolan' }
const chain = { PORTOLAN_CHAINS__C__NETWORKS__MAINNET__UPSTREAMS__0__URL: 'http://127.0.0.1:1' }
const everywhere = { PORTOLAN_SERVER__HOST: '0.0.0.0' }
const isPublic = { PORTOLAN_SERVER__BASE_URL: 'https://portolan.example.org' }
const on = { PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true' }
const off = { PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'false' }

describe('local chains run', () => {
  it.each<[boolean, string, ReturnType<typeof load>]>([
    [true, 'without any configuration', load()],
    [true, 'with a port of the environment', load({ PORTOLAN_PORT: '0' })],
    [false, 'with a configuration file', loadText('')],
    [false, 'with a database of the environment', load(database)],
    [false, 'with a chain of the environment', load(chain)],
  ])('%s: %s', (expected, _, config) => {
    expect(wantsLocalChains(config)).toBe(expected)
  })
})

describe('the development rules hold', () => {
  it.each<[boolean, string, ReturnType<typeof load>, 'local chains' | 'no local chains']>([
    [true, 'nothing configured', load(), 'local chains'],
    [true, 'localhost', load({ PORTOLAN_SERVER__HOST: 'localhost' }), 'local chains'],
    [true, '::1', load({ PORTOLAN_SERVER__HOST: '::1' }), 'local chains'],
    [false, 'nothing configured', load(), 'no local chains'],
    [false, 'a port', load({ PORTOLAN_PORT: '4000' }), 'no local chains'],
    [false, 'a chain by environment', load(chain), 'no local chains'],
    [
      false,
      'a chain and a host by environment',
      load({ ...chain, ...everywhere }),
      'no local chains',
    ],
    [false, 'a database by environment', load(database), 'no local chains'],
    [false, 'every interface', load(everywhere), 'local chains'],
    [false, 'a name', load({ PORTOLAN_SERVER__HOST: 'portolan.internal' }), 'local chains'],
    [false, 'a public address on loopback', load(isPublic), 'local chains'],
    [false, 'a file', loadText(''), 'no local chains'],
    [
      true,
      'a local base_url',
      load({ PORTOLAN_SERVER__BASE_URL: 'http://[::1]:4000' }),
      'local chains',
    ],
    [true, 'the switch', load({ ...on, ...everywhere }), 'local chains'],
    [true, 'the switch', load({ ...on, ...chain, ...database }), 'no local chains'],
    [
      true,
      'the switch in a file',
      loadText('security: {development_rules: true}'),
      'no local chains',
    ],
    [false, 'the switch off', load(off), 'local chains'],
  ])('%s: %s, %4$s', (expected, _, config, chains) => {
    expect(hasDevelopmentRules(config, chains === 'local chains')).toBe(expected)
  })

  it('and open plain http and loopback to webhooks only then', () => {
    const target = (rules: boolean, env: Env = {}) => {
      const config = load(env)
      const { allowHttp, reachable } = endpointRules(() => config, rules)
      return [allowHttp, ...['127.0.0.1', '::1', '10.0.0.1'].map(reachable.allows)]
    }
    expect(target(true)).toEqual([true, true, true, false])
    expect(target(false)).toEqual([false, false, false, false])
    const chosen = { PORTOLAN_WEBHOOKS__ALLOW_HTTP: 'true' }
    expect(target(false, chosen)).toEqual([true, false, false, false])
  })
})

describe('the start warns', () => {
  it('of the switch where nothing else would turn the rules on', () => {
    expect(developmentWarning(load(on), false)).toMatch(/^security\.development_rules is on: /)
    expect(developmentWarning(load({ ...on, ...everywhere }), true)).toMatch(/ is on: /)
    expect(developmentWarning(load(on), true)).toBeUndefined()
  })

  it('of local chains that others reach', () => {
    expect(developmentWarning(load(everywhere), true)).toMatch(/without the demo organization/)
    expect(developmentWarning(load({ ...everywhere, ...off }), true)).toBeUndefined()
  })

  it('of nothing else', () => {
    expect(developmentWarning(load(), true)).toBeUndefined()
    expect(developmentWarning(load(everywhere), false)).toBeUndefined()
    expect(developmentWarning(loadText(''), false)).toBeUndefined()
  })
})
