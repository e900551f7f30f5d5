import { expect, it } from 'vitest'
import { mergeStatus } from './merge-status.ts'

const streams = { connections: 2, subscriptions: 3, filters: 1, notifications: 10, head: 7 }
const network = { chain_id: 1, head: 7, cache_bytes: 100, streams, upstreams: [{ name: 'a' }] }
const idle = {
  ...{ state: 'idle', chain_id: null, head: null, cache_bytes: 0, upstreams: [{ name: 'b' }] },
  streams: { connections: 0, subscriptions: 0, filters: 0, notifications: 0, head: null },
}
const chain = { kind: 'evm', default_network: 'mainnet', networks: ['mainnet'] }

it('takes each part from where it runs, and adds up what clients have open', () => {
  const active = { state: 'active', ...network }
  const later = { ...active, head: 9, cache_bytes: 50 }
  expect(
    mergeStatus([
      {
        name: 'background',
        status: {
          ...{ version: '1', webhooks: { delivered: 5 } },
          chains: { c: { ...chain, nodes: { mainnet: idle }, tracking: { block_number: 6 } } },
        },
      },
      {
        name: 'worker-1',
        status: { version: '1', chains: { c: { ...chain, nodes: { mainnet: active } } } },
      },
      {
        name: 'worker-2',
        status: { version: '1', chains: { c: { ...chain, nodes: { mainnet: later } } } },
      },
    ]),
  ).toEqual({
    version: '1',
    webhooks: { delivered: 5 },
    chains: {
      c: {
        ...chain,
        tracking: { block_number: 6 },
        nodes: {
          mainnet: {
            ...{ state: 'active', chain_id: 1, head: 9, cache_bytes: 150 },
            upstreams: [{ name: 'a' }],
            streams: { connections: 4, subscriptions: 6, filters: 2, notifications: 20, head: 7 },
          },
        },
      },
    },
  })
})
