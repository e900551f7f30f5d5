import { afterAll, expect, it } from 'vitest'
import { startAnvil } from '../../../devnet/anvil/anvil.ts'
import { createEvmChain } from '../../../src/chains/evm/chain.ts'
import { createByteSet } from '../../../src/lib/bytes.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { poolOf } from './test-pool.ts'

const never = new AbortController().signal
const anvil = await startAnvil({ args: ['--no-mining', '--network', 'optimism'] })
const pool = poolOf(anvil.url)
const chain = createEvmChain({ pool, pollMs: 100 })

afterAll(async () => {
  await chain.stop()
  await pool.stop()
  await anvil.stop()
})

it('a deposit of a rollup is proved, has no fee and mints its value', async () => {
  await waitFor('the node is explored', () => pool.can('block_receipts'))
  const [from, to] = (await anvil.call<string[]>('eth_accounts')) as [string, string]
  const before = await chain.head(never)
  await anvil.call('eth_sendTransaction', [
    {
      ...{ from, to, value: '0x5', gas: '0x5208' },
      ...{ type: '0x7e', sourceHash: `0x${'22'.repeat(32)}`, mint: '0x9', isSystemTx: false },
    },
  ])
  await anvil.call('evm_mine')
  for await (const event of chain.follow(before, AbortSignal.timeout(20_000))) {
    if (event.kind !== 'blocks') throw new Error(event.kind)
    const sender = Buffer.from(from.slice(2), 'hex')
    const { movements } = event.blocks[0]!.decode({
      accounts: createByteSet([sender]),
      contracts: createByteSet([]),
      tokenAccount: () => [],
    })
    expect(movements).toMatchObject([
      { from: Buffer.alloc(0), to: sender, value: 9n, transaction_fee: 0n },
      { from: sender, value: 5n, transaction_fee: 0n },
    ])
    break
  }
})
