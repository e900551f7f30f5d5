import { internal } from '@ton/core'
import { afterAll, describe, expect, it } from 'vitest'
import type { ServerKind } from '../../../devnet/ton/servers.ts'
import { startTonDevChain } from '../../../devnet/ton/ton-dev-chain.ts'
import type { ChainBlock, Tracked } from '../../../src/chains/chain.ts'
import { createTonChain } from '../../../src/chains/ton/chain.ts'
import { createByteSet } from '../../../src/lib/bytes.ts'
import errors from '../../fixtures/ton/errors.json' with { type: 'json' }
import { addressOf, createPayer, fundPayers } from './ton-payers.ts'

const never = new AbortController().signal
const dev = await startTonDevChain({ blockTimeMs: 0, startTime: 1_800_000_000, rounds: 2 })
afterAll(dev.stop)
const payer = createPayer(dev, 1)
await fundPayers(dev, [payer])

const ask = async (url: string, method: string, params: object) => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method, params })
  const response = await fetch(`${url}/jsonRPC`, { method: 'POST', body })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

describe.for<ServerKind>(['cpp', 'python'])('a node behind the %s server', (server) => {
  it('is followed, with bounced messages and balances', async () => {
    const { node_url } = await dev.addEndpoint({ server })
    const chain = createTonChain({ upstreams: [{ url: node_url, v3: false }], pollMs: 20 })
    const tracked: Tracked = {
      accounts: createByteSet([payer.bytes]),
      contracts: createByteSet([]),
      tokenAccount: () => [],
    }
    try {
      const before = await chain.head(never)
      // The account has no code: a payment that may bounce comes back.
      const empty = Buffer.alloc(33, 0x33)
      empty[0] = 0
      await payer.send(internal({ to: addressOf(empty), value: 500_000_000n, bounce: true }))
      await dev.mine(4)
      const blocks: ChainBlock[] = []
      for await (const event of chain.follow(before, AbortSignal.timeout(20_000))) {
        if (event.kind !== 'blocks') throw new Error(event.kind)
        blocks.push(...event.blocks)
        if (blocks.at(-1)!.number >= dev.chain.head().id.seqno) break
      }
      const contents = blocks.map((block) => block.decode(tracked))
      const sent = contents.flatMap(({ movements }) => movements)
      expect(sent.map(({ only }) => only)).toEqual(['from', 'to'])
      expect(contents.flatMap(({ updates = [] }) => updates)).toEqual([
        { transfer_hash: sent[0]!.transfer_hash, detail: { status: 'failed', bounced: 'true' } },
      ])
      const at = await chain.head(never)
      const [reading] = await chain.readBalances(
        [{ address: payer.bytes, asset: chain.native }],
        at,
        never,
      )
      expect(reading!.balance).toBe(dev.chain.account(payer.text).balance)
    } finally {
      await chain.stop()
    }
  })
})

it('the development node answers as the recorded servers did', async () => {
  const recorded = (means: string) => errors.filter((error) => error.means.startsWith(means))
  const python = await dev.addEndpoint({ server: 'python' })
  const [unknown] = recorded('the method is called')
  expect(await ask(python.node_url, 'getShards', { seqno: 1 })).toEqual({
    status: unknown!.status,
    body: unknown!.body,
  })
  const cpp = await dev.addEndpoint({ requestsPerSecond: 1 })
  expect(await ask(cpp.node_url, 'getShards', { seqno: 1 })).toMatchObject({ status: 200 })
  const [limited] = recorded('too many')
  expect(await ask(cpp.node_url, 'shards', { seqno: 1 })).toEqual({
    status: limited!.status,
    body: limited!.body,
  })
  python.faults.add({ kind: 'pruned', blocks: 1 })
  const [, pruned] = recorded('pruned')
  const { body, status } = await ask(python.node_url, 'shards', { seqno: 2 })
  expect(status).toBe(pruned!.status)
  expect(body.error).toBe(String(pruned!.body.error).replace('2399', '2'))
})
