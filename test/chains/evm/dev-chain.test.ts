import { afterAll, expect, it } from 'vitest'
import { startEvmDevChain } from '../../../devnet/evm/dev-chain.ts'
import { waitFor } from '../../helpers/wait-for.ts'

type Block = { number: string; hash: string; parentHash: string; transactions: string[] }

const chain = await startEvmDevChain({ blockTimeMs: 200 })
afterAll(() => chain.stop())

let sent = 0
const send = () =>
  chain.call<string>('eth_sendTransaction', [
    { from: chain.traffic_address, to: chain.faucet_address, value: `0x${(++sent).toString(16)}` },
  ])
const read = (number: number) =>
  chain.call<Block | null>('eth_getBlockByNumber', [`0x${number.toString(16)}`, false])

it('stays one chain when blocks are made while others are replaced', async () => {
  // There must be blocks to replace.
  await waitFor('two blocks', async () => Number(await chain.call('eth_blockNumber')) >= 2)
  for (let round = 0; round < 8; round++) {
    for (let i = 0; i < 3; i++) await send()
    await Promise.all([chain.reorganize(2), send()])
  }
  const head = Number(await chain.call('eth_blockNumber'))
  for (let number = 1, parent = await read(0); number <= head; number++) {
    const block = await read(number)
    expect(block, `block ${number} of ${head}`).toMatchObject({ parentHash: parent?.hash })
    const receipts = await chain.call<{ blockHash: string }[]>('eth_getBlockReceipts', [
      block?.hash,
    ])
    for (const { blockHash } of receipts) expect(blockHash).toBe(block?.hash)
    parent = block
  }
})
