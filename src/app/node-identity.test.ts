import { expect, test } from 'vitest'
import { loadConfig } from './config/load.ts'
import type { Overrides } from './config/schema.ts'
import { mayBeSame, mayHaveIdentity, networksOf } from './node-identity.ts'

const hash = 'ab'.repeat(32)
const node = (url: string) => ({ upstreams: [{ url }] })
const evm = (url: string, more: object = {}) => ({
  variant: 'C',
  networks: { mainnet: { ...node(url), ...more } },
})
const { chains } = loadConfig({
  env: {},
  cwd: '/',
  overrides: {
    chains: {
      base: evm('http://127.0.0.1:1', { chain_id: 8453 }),
      copy: evm('http://127.0.0.1:2', { chain_id: 8453 }),
      polygon: evm('http://127.0.0.1:3', { chain_id: 137 }),
      one: evm('http://127.0.0.1:4'),
      two: evm('http://127.0.0.1:4'),
      three: evm('http://127.0.0.1:5'),
      alias: { ...evm('http://127.0.0.1:4'), shared: true },
      t: { networks: { mainnet: { ...node('http://127.0.0.1:6'), chain_id: -239 } } },
      ton: { variant: 'T', networks: { mainnet: node('http://127.0.0.1:7') } },
      p: { networks: { mainnet: { ...node('ws://127.0.0.1:8'), chain_id: `0x${hash}` } } },
      s: { networks: { mainnet: { ...node('http://127.0.0.1:9'), chain_id: '35834a8a' } } },
    } as unknown as Overrides['chains'],
  },
})
const networks = networksOf({ chains })
const at = (name: string) => networks.find(({ chain }) => chain === name)!

test.each([
  ['base', 'eip155:8453:aa', true],
  ['base', 'eip155:84532:aa', false],
  ['one', 'eip155:84532:aa', true],
  ['one', 'ton:-239:aa', false],
  ['t', 'ton:-239:aa', true],
  ['t', 'ton:-3:aa', false],
  ['ton', 'ton:-3:aa', true],
  ['p', `polkadot:${hash}`, true],
  ['p', `polkadot:${'cd'.repeat(32)}`, false],
  ['s', 'sui:4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S', true],
])('%s may have the identity %s: %s', (name, identity, expected) => {
  expect(mayHaveIdentity(at(name), identity)).toBe(expected)
})

test('networks that are asked at a start have one chain id, one node or a family with few networks', () => {
  const pairs = networks.flatMap((one, index) =>
    networks
      .slice(index + 1)
      .filter((other) => mayBeSame(one, other))
      .map((other) => `${one.chain} ${other.chain}`),
  )
  expect(pairs).toEqual(['t ton', 'base copy', 'one two'])
})
