// Behaviour of real servers: a load balancer whose machines are at different heights, lists that end
// at the server's deadline, and providers that expect their token in the path.
import { expect, it } from 'vitest'
import type { SuiNode } from '../../devnet/sui/node.ts'
import { ChainUnavailableError } from '../../src/chains/chain.ts'
import { suiFamily } from '../../src/chains/sui/family.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { connect, expectGapless, genesis, hashOf, never, record, start } from './sui-nodes.ts'

const receiver = `0x${'ab'.repeat(32)}`
const query = {
  address: Buffer.from(receiver.slice(2), 'hex'),
  asset: suiFamily.native,
}
const tip = ({ ledger }: SuiNode) => {
  const { number, digest } = ledger.history.newest()
  return { number, hash: hashOf(digest) }
}

/** The receiver has 5 for long, and 12 since the newest checkpoints. */
const startPaid = async (): Promise<SuiNode> => {
  const node = await start()
  await node.pay(node.key(1), receiver, 5n)
  for (let i = 0; i < 20; i++) node.ledger.seal()
  await node.pay(node.key(1), receiver, 7n)
  for (let i = 0; i < 5; i++) node.ledger.seal()
  return node
}

it('reads a balance again where a machine of the balancer is behind the stream', async () => {
  const node = await startPaid()
  const { chain } = connect({ upstreams: [{ url: node.url }] })
  const seen = record(chain, genesis(node))
  await waitFor('the head', () => seen.last() === tip(node).number)
  node.faults.staleBalances = [10, 10, 0]
  const [reading] = await chain.readBalances([query], tip(node), never)
  expect(reading).toEqual({ balance: 12n, block_number: tip(node).number })
})

it('reads from another node where every machine of a balancer is behind', async () => {
  const node = await startPaid()
  const second = await node.openEndpoint()
  const { chain } = connect({
    upstreams: [{ url: node.url }, { url: second.url, priority: 1 }],
    limits: { staleMs: 200 },
  })
  node.faults.staleBalances = [10]
  const [reading] = await chain.readBalances([query], tip(node), never)
  expect(reading).toEqual({ balance: 12n, block_number: tip(node).number })
})

it('gives no balance where all machines are behind, and one as soon as they are not', async () => {
  const node = await startPaid()
  const { chain } = connect({ upstreams: [{ url: node.url }], limits: { staleMs: 200 } })
  node.faults.staleBalances = [10]
  await expect(chain.readBalances([query], tip(node), never)).rejects.toThrow(ChainUnavailableError)
  node.faults.staleBalances = []
  const [reading] = await chain.readBalances([query], tip(node), never)
  expect(reading?.balance).toBe(12n)
})

it('does not take a balance whose index is behind the executed height', async () => {
  const node = await startPaid()
  node.faults.indexLag = 10
  const { chain } = connect({ upstreams: [{ url: node.url }] })
  const seen = record(chain, genesis(node))
  await waitFor('the head', () => seen.last() === tip(node).number)
  const reading = chain.readBalances([query], tip(node), never)
  // The index proceeds while the balance is read.
  const proceeding = setInterval(() => {
    if (node.faults.indexLag > 0) node.faults.indexLag--
    else node.ledger.seal()
  }, 20)
  try {
    expect((await reading)[0]?.balance).toBe(12n)
  } finally {
    clearInterval(proceeding)
  }
})

it('keeps the checkpoints that came before the deadline of a list', async () => {
  const node = await start()
  for (let i = 0; i < 300; i++) node.ledger.seal()
  node.faults.listDeadline = 7
  const { chain } = connect({ upstreams: [{ url: node.url }] })
  const seen = record(chain, genesis(node))
  await waitFor('all of it', () => seen.last() === 300)
  expectGapless(seen.numbers, 1)
  const [upstream] = chain.status!().upstreams!
  expect(upstream?.requests).toBeLessThan(300 / 7 + 60)
})

it('fetches a checkpoint by itself where the deadline leaves no list', async () => {
  const node = await start()
  for (let i = 0; i < 40; i++) node.ledger.seal()
  node.faults.listDeadline = 0
  const { chain } = connect({ upstreams: [{ url: node.url }] })
  const seen = record(chain, genesis(node))
  await waitFor('all of it', () => seen.last() === 40)
  expectGapless(seen.numbers, 1)
})

it('sends the path of a gRPC-web URL, and refuses one that native gRPC cannot send', async () => {
  const node = await start()
  node.faults.path = '/v2/key-of-the-provider'
  const url = `${node.url}${node.faults.path}`
  const { chain } = connect({ upstreams: [{ url, transport: 'grpc-web' }] })
  expect(await chain.identity(never)).toBe(`sui:${node.ledger.chainId}`)
  expect(() => connect({ upstreams: [{ url }] })).toThrow(
    'native gRPC sends no path: remove it from the URL, send a token with headers, or use transport: grpc-web',
  )
  expect(() => connect({ upstreams: [{ url: `${node.url}/?token=1` }] })).toThrow('no query')
})
