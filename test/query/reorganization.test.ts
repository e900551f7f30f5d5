import { expect, it, onTestFinished } from 'vitest'
import { startAnvil } from '../../devnet/anvil/anvil.ts'
import { startChain } from '../helpers/anvil.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { startMethodProxy } from './method-proxy.ts'
import { startQueryApp } from './query-app.ts'

const byHash = [
  'GetTransaction',
  'GetTransactionReceipt',
  'ListLogs',
  'ListInternalTransactions',
] as const

const longWait = { timeoutMs: 45_000 }
const slow = { timeout: 150_000 }

it(
  'serves nothing of a dropped block, by number or by hash, once the next block is seen',
  slow,
  async () => {
    const anvil = await startAnvil({ args: ['--no-mining', '--network', 'optimism'] })
    onTestFinished(anvil.stop)
    const [from, to] = (await anvil.call<string[]>('eth_accounts')) as [string, string]
    await anvil.call('anvil_mine', ['0x3'])
    const app = await startQueryApp([anvil.url])
    const pay = { from, to, value: '0x1' }
    const transaction_hash = await anvil.call<string>('eth_sendTransaction', [pay])
    await anvil.call('evm_mine')
    // Cached, all of it.
    let dropped: { block_hash: string; block_number: number } | undefined
    await waitFor(
      'the block is served',
      async () => {
        dropped = (await app.query('GetBlock', { block_number: 4 })).json.block
        return dropped !== undefined
      },
      longWait,
    )
    const call = (operation: string) =>
      operation === 'ListTransactions'
        ? app.query(operation, { transaction_hashes: [transaction_hash] })
        : app.query(operation, { transaction_hash })
    for (const operation of byHash) expect((await call(operation)).status, operation).toBe(200)
    expect((await call('ListTransactions')).json.transactions).toHaveLength(1)

    // Another block in its place, and one more on top.
    await anvil.call('anvil_reorg', [1, [[{ from: to, to: from, value: '0x2' }, 0]]])
    await anvil.call('evm_mine')
    const replacing = await anvil.call<{ hash: string }>('eth_getBlockByNumber', ['0x4', false])
    expect(replacing.hash).not.toBe(dropped?.block_hash)
    await waitFor(
      'the next block is seen',
      async () => {
        const { json } = await app.admin('/status')
        return json.chains.q.nodes.mainnet.head === 5
      },
      longWait,
    )
    const { json } = await app.query('GetBlock', { block_number: 4 })
    expect(json.block.block_hash).toBe(replacing.hash)
    for (const operation of byHash) {
      const { status, json } = await call(operation)
      expect([operation, status, json.reason]).toEqual([operation, 404, 'TRANSACTION_NOT_FOUND'])
    }
    expect((await call('ListTransactions')).json).toEqual({ transactions: [] })
  },
)

it('a node that stays on the dropped branch is ignored', slow, async () => {
  const chain = await startChain(2)
  onTestFinished(chain.stop)
  const [left, right] = chain.nodes as [(typeof chain.nodes)[0], (typeof chain.nodes)[0]]
  await chain.mine(3)
  const [from, to] = (await left.call<string[]>('eth_accounts')) as [string, string]
  // The same height on two branches, each with a transaction of its own.
  const pay = (value: string, sender: string) => [{ from: sender, to, value, gas: '0x5208' }]
  const onRight = await right.call<string>('eth_sendTransaction', pay('0x1', from))
  const onLeft = await left.call<string>('eth_sendTransaction', pay('0x2', from))
  await chain.mine(1, [right])
  const proxies = [await startMethodProxy(left.url), await startMethodProxy(right.url)]
  const app = await startQueryApp(proxies.map(({ url }) => url))
  expect((await app.query('GetTransaction', { transaction_hash: onRight })).status).toBe(200)
  // The other branch is longer; the right node never learns of it.
  await chain.mine(2, [left])
  await waitFor(
    'the longer branch is seen',
    async () => {
      const { json } = await app.admin('/status')
      return json.chains.q.nodes.mainnet.head === 5
    },
    longWait,
  )
  const canonical = await left.call<{ hash: string }>('eth_getBlockByNumber', ['0x4', false])
  for (let round = 0; round < 10; round++) {
    const block = await app.query('GetBlock', { block_number: 4 })
    expect(block.json.block.block_hash).toBe(canonical.hash)
    const gone = await app.query('GetTransaction', { transaction_hash: onRight })
    expect([gone.status, gone.json.reason]).toEqual([404, 'TRANSACTION_NOT_FOUND'])
    const there = await app.query('GetTransaction', { transaction_hash: onLeft })
    expect(there.json.transaction).toMatchObject({ block_number: 4, block_hash: canonical.hash })
  }
})
