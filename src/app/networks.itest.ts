import { request } from 'undici'
import { expect, test } from 'vitest'
import { waitFor } from '../../test/helpers/wait-for.ts'
import type { StubNode } from '../chains/evm/testing/stub-node.ts'
import type { Network } from '../gateway/network.ts'
import type { Answer } from '../gateway/rpc/answer.ts'
import { systemIds } from '../lib/ids.ts'
import { openStubNetwork } from './testing/stub-network.ts'

const setup = (scheme: 'http' | 'ws') =>
  openStubNetwork({ variant: 'C' }, (stub) => (scheme === 'ws' ? stub.wsUrl : stub.url))

const principal = {
  credential_id: systemIds.uuid(),
  organization_id: systemIds.uuid(),
  role: 'ROLE_MEMBER' as const,
}

const ask = (network: Network, method: string, args: unknown[] = []): Promise<Answer> =>
  new Promise((resolve) => {
    const params = JSON.stringify(args)
    const call = { id: '1', method, params, args, refusal: undefined }
    network.call(call, network.sessionOf(principal), resolve)
  })

/**
 * Waits until no connection is left. An empty batch of our own comes after everything that was sent before, and
 * counts as no method.
 */
const isQuiet = async (stub: StubNode) => {
  const { body } = await request(stub.url, { method: 'POST', body: '[]', reset: true })
  await body.dump()
  await waitFor('the connections are closed', () => stub.connections() === 0)
}

const blockNumber = async (network: Network) => (await ask(network, 'eth_blockNumber')).text

test.each(['http', 'ws'] as const)(
  '%s: nodes are connected only while the network is used',
  async (scheme) => {
    const { stub, clock, networks, network } = await setup(scheme)
    const shown = () => {
      const { state, head, upstreams } = networks.status().base!.mainnet!
      return [state, head, upstreams[0]!.state]
    }
    await isQuiet(stub)
    expect([stub.methods, clock.shortSleeps()]).toEqual([[], 0])
    expect(shown()).toEqual(['idle', null, 'idle'])

    expect(await blockNumber(network)).toBe('"0x64"')
    expect(shown()).toEqual(['active', 100, 'healthy'])
    expect(stub.connections()).toBeGreaterThan(0)

    await clock.jump(9)
    expect(await blockNumber(network)).toBe('"0x64"')
    await clock.jump(9)
    expect(network.isAwake()).toBe(true)
    await clock.jump(3)
    expect(network.isAwake()).toBe(false)
    expect(shown()).toEqual(['idle', null, 'idle'])
    const asked = stub.methods.length
    await isQuiet(stub)
    expect([stub.methods.length, clock.shortSleeps()]).toEqual([asked, 0])

    // What was known of the chain is not given as an answer.
    stub.head = 5_000
    expect(await blockNumber(network)).toBe('"0x1388"')
    expect(shown()).toEqual(['active', 5_000, 'healthy'])
  },
)

test('a filter keeps the network awake until it ends', async () => {
  const { clock, network } = await setup('http')
  const { text: id } = await ask(network, 'eth_newBlockFilter')
  await clock.jump(3)
  for (let round = 0; round < 6; round++) {
    expect((await ask(network, 'eth_getFilterChanges', [JSON.parse(id)])).ok).toBe(true)
    await clock.jump(4)
  }
  expect(network.isAwake()).toBe(true)
})

test('a kept network stays awake until it is released', async () => {
  const { clock, networks, network } = await setup('http')
  const kept = networks.keep('base', 'mainnet')!
  await clock.jump(60)
  expect(network.isAwake()).toBe(true)
  kept.stop()
  await clock.jump(12)
  expect(network.isAwake()).toBe(false)
})

test('many calls at once wake the network once, and none of them fails', async () => {
  const { stub, network } = await setup('http')
  stub.delayMs = 100
  const answers = await Promise.all(Array.from({ length: 50 }, () => blockNumber(network)))
  expect(new Set(answers)).toEqual(new Set(['"0x64"']))
})

test('calls to a network without a node fail within a bounded time', async () => {
  const { stub, network } = await setup('http')
  await stub.stop()
  const answer = await ask(network, 'eth_blockNumber')
  expect([answer.ok, answer.refusal?.reason]).toEqual([false, 'UPSTREAM_UNAVAILABLE'])
})
