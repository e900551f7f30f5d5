import { describe, expect, it } from 'vitest'
import { loadConfig } from '../load.ts'
import { loadText, sentencesOf } from '../testing/fixture.ts'

describe('chains of free names', () => {
  const named = (chain: string) => `chains:\n  base-two: ${chain}\n`
  const nodes = 'networks: {mainnet: {upstreams: [{url: "http://node"}]}}'

  it('have the keys of the family of their variant', () => {
    const { chains } = loadText(named(`{variants: [C, Q], record_pending: false, ${nodes}}`))
    expect(chains['base-two']).toMatchObject({ kind: 'evm', record_pending: false, prefix: 'eth' })
    expect(loadText(named(`{variant: T, ${nodes}}`)).chains['base-two']?.kind).toBe('ton')
  })

  it('come from variables too, with an underscore for a dash', () => {
    const env = {
      PORTOLAN_CHAINS__BASE_TWO__VARIANT: 'S',
      PORTOLAN_CHAINS__BASE_TWO__NETWORKS__MAINNET__UPSTREAMS__0__URL: 'http://node:9000',
    }
    const config = loadConfig({ env, cwd: '/' })
    expect(config.chains['base-two']).toMatchObject({ kind: 'sui', variant: 'S' })
  })

  it.each([
    [`{${nodes}}`, /base-two.variant.*must be given: one of C, Q, T, S, P/],
    [`{variant: X, ${nodes}}`, /base-two.variant.*must be one of `C`, `Q`/],
    [`{variant: C, variants: [C], ${nodes}}`, /base-two.variants.*must not be given beside/],
    [`{variants: [C, C], ${nodes}}`, /must not name a variant twice/],
    [`{variant: C, default_network: x, ${nodes}}`, /must be one of the networks of the chain/],
    [
      `{variant: P, record_pending: true, ${nodes}}`,
      /Unknown key `chains.base-two.record_pending`/,
    ],
  ])('%s is refused', (chain, expected) => {
    expect(sentencesOf(() => loadText(named(chain))).join()).toMatch(expected)
  })

  it.each(['admin', 'gateway', 'Base', 'a_b', '-a'])('%s is no name of a chain', (name) => {
    const text = `chains:\n  "${name}": {variant: C, ${nodes}}\n`
    expect(sentencesOf(() => loadText(text)).join()).toMatch(/must have a(?:nother)? name/)
  })
})
