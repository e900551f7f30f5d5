import { expect, test } from 'vitest'
import { waitFor } from '../helpers/wait-for.ts'
import { startQueryApp } from '../query/query-app.ts'
import { createVerifiedWorld } from './verified-world.ts'
import { type NodeServer, serveNode } from './world-node.ts'

test('while two nodes stay on two branches of one height, chain queries give the canonical one only', async () => {
  const world = createVerifiedWorld(2)
  const [a, b] = (await Promise.all(world.nodes.map((node) => serveNode(world, node)))) as [
    NodeServer,
    NodeServer,
  ]
  const first = world.mine(world.genesis)
  for (const node of [a, b]) node.show(first)
  const app = await startQueryApp([a.wsUrl, b.wsUrl])
  const grow = (from: typeof first) =>
    Array.from({ length: 4 }).reduce<(typeof first)[]>(
      (blocks) => [...blocks, world.mine(blocks.at(-1) ?? from)],
      [],
    )
  const lefts = grow(first)
  const [left, right] = [lefts.at(-1), grow(first).at(-1)] as [typeof first, typeof first]
  const heads = async (): Promise<number[]> => {
    const { json } = await app.admin('/status')
    return json.chains.q.nodes.mainnet.upstreams.map(({ head }: { head: number }) => head)
  }
  a.show(left)
  await waitFor('the head of the first', async () => (await heads())[0] === left.number)
  b.show(right)
  await waitFor('the head of the second', async () => (await heads())[1] === right.number)

  const statusOf = async (operation: string, transaction_hash: string | undefined) =>
    (await app.query(operation, { transaction_hash })).status
  for (let round = 0; round < 4; round++)
    for (const operation of ['GetTransaction', 'GetTransactionReceipt', 'ListLogs'])
      expect([
        ...[operation, await statusOf(operation, left.transactions[1])],
        await statusOf(operation, right.transactions[1]),
      ]).toEqual([operation, 200, 404])
  // Blocks of both branches have these. The node of the other branch would trace them sooner.
  a.slow = 'debug_traceTransaction'
  for (const { hash, transactions } of lefts) {
    const transaction_hash = transactions[0]
    const { json } = await app.query('ListInternalTransactions', { transaction_hash })
    expect(json.internal_transactions?.map(({ input }: { input: string }) => input)).toEqual([hash])
  }
})
