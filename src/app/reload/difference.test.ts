import { expect, test } from 'vitest'
import { loadConfig } from '../config/load.ts'
import type { Overrides } from '../config/schema.ts'
import { compareConfigs, isEmpty, mergeLive } from './difference.ts'

const load = (overrides: Overrides) => loadConfig({ env: {}, cwd: '/', overrides })
const nodes = (...urls: string[]) => ({ upstreams: urls.map((url) => ({ url })) })
const base = (networks: object, more: object = {}) => ({ variant: 'C', networks, ...more })
const one = { mainnet: nodes('http://a') }
const both = { mainnet: nodes('http://a'), sepolia: nodes('http://b') }

const compare = (before: Overrides, after: Overrides) => compareConfigs(load(before), load(after))
const chains = (before: Overrides['chains'], after: Overrides['chains']) => {
  const { added, changed, removed, isChains } = compare({ chains: before }, { chains: after })
  const paths = (list: readonly { chain: string; network: string }[]) =>
    list.map(({ chain, network }) => `${chain}/${network}`)
  return {
    added: paths(added),
    changed: changed.map(({ chain, network, what }) => `${chain}/${network} ${what}`),
    removed: paths(removed),
    isChains,
  }
}
const nothing = { added: [], changed: [], removed: [], isChains: true }

test('a configuration differs in nothing from itself', () => {
  expect(isEmpty(compare({ chains: { base: base(both) } }, { chains: { base: base(both) } }))).toBe(
    true,
  )
})

test('chains and networks that are added and removed', () => {
  expect(chains({}, { base: base(both) })).toEqual({
    ...nothing,
    added: ['base/mainnet', 'base/sepolia'],
  })
  expect(chains({ base: base(both) }, { base: base(one) })).toEqual({
    ...nothing,
    removed: ['base/sepolia'],
  })
  expect(chains({ base: base(one), c: { networks: one } }, { c: { networks: one } })).toEqual({
    ...nothing,
    removed: ['base/mainnet'],
  })
})

test('nodes of an EVM network are replaced in place, those of another family with their network', () => {
  const more = { mainnet: nodes('http://a', 'http://c') }
  expect(chains({ base: base(one) }, { base: base(more) }).changed).toEqual(['base/mainnet nodes'])
  expect(chains({ t: { networks: one } }, { t: { networks: more } }).changed).toEqual([
    't/mainnet settings',
  ])
})

test('other settings of a network or its chain replace the networks that they concern', () => {
  const proof = { mainnet: { ...both.mainnet, proof: 'none' }, sepolia: both.sepolia }
  expect(chains({ base: base(both) }, { base: base(proof) }).changed).toEqual([
    'base/mainnet settings',
  ])
  const prefix = base(both, { prefix: 'op' })
  expect(chains({ base: base(both) }, { base: prefix }).changed).toHaveLength(2)
  const variants = { variants: ['C', 'Q'], networks: one }
  expect(chains({ base: base(one) }, { base: variants }).changed).toEqual(['base/mainnet settings'])
  expect(chains({ c: { networks: one } }, { c: base(one) }).changed).toEqual([])
})

test('another default network replaces the old and the new one', () => {
  const moved = base(both, { default_network: 'sepolia' })
  expect(chains({ base: base(both) }, { base: moved }).changed).toEqual([
    'base/mainnet settings',
    'base/sepolia settings',
  ])
})

test('keys that apply at once and keys that need a restart', () => {
  const after: Overrides = {
    server: { port: 4100, cors_origins: ['https://a.example'] },
    logging: { level: 'debug', format: 'json' },
    limits: { per_second_limit: 7, replicas: 3 },
    webhooks: { timeout_seconds: 3, allowed_networks: ['10.0.0.0/8'] },
    data_dir: '/var/lib/portolan',
  }
  const { settings, restart, isChains } = compare({}, after)
  expect(settings.toSorted()).toEqual([
    'limits.per_second_limit',
    'logging.level',
    'server.cors_origins',
    'webhooks.allowed_networks',
    'webhooks.timeout_seconds',
  ])
  expect(restart.toSorted()).toEqual([
    'data_dir',
    'limits.replicas',
    'logging.format',
    'server.port',
  ])
  expect(isChains).toBe(false)
})

test('what needs a restart is named by every reload until then, what was applied is not', () => {
  const started = load({})
  const after = load({
    server: { port: 4100 },
    logging: { level: 'debug' },
    chains: { c: { networks: one } },
  })
  const running = mergeLive(started, after)
  expect(running.server.port).toBe(started.server.port)
  const again = compareConfigs(running, after)
  expect(again).toEqual({
    ...{ added: [], changed: [], removed: [], isChains: false, settings: [] },
    restart: ['server.port'],
  })
  const back = compareConfigs(running, load({ logging: { level: 'debug' } }))
  expect([back.removed, back.restart]).toEqual([[{ chain: 'c', network: 'mainnet' }], []])
})
