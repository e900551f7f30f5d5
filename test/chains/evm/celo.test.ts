// A real node with the rules of Celo, on which the coin is a token as well: coin that is sent as the token is neither a
// value nor a call.

import { afterAll, expect, it } from 'vitest'
import { startAnvil } from '../../../devnet/anvil/anvil.ts'
import type { ChainBlock } from '../../../src/chains/chain.ts'
import { createEvmChain } from '../../../src/chains/evm/chain.ts'
import { transferTopic } from '../../../src/chains/evm/codec/topics.ts'
import { evmFamily } from '../../../src/chains/evm/family.ts'
import { createByteSet } from '../../../src/lib/bytes.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { poolOf } from './test-pool.ts'
import { createSender } from './token-contracts.ts'

const coin_contract = '0x471ece3750da237f93b8e339c536989b8978a438'
// Gives its input (from, to, value) to the precompile 0xfd, reverts if that fails, and emits `Transfer`.
const code = `0x606060006000376000600060606000600060fd5af1601c57600080fd5b602035600035${`7f${transferTopic.slice(2)}`}60206040a300`

const anvil = await startAnvil({ args: ['--celo', '--no-mining'] })
const pool = poolOf(anvil.url)
afterAll(async () => {
  await pool.stop()
  await anvil.stop()
})

it('coin that is sent through its contract has a record, and the records explain the balances', async () => {
  await waitFor('the node is explored', () => pool.can('debug_trace'))
  const chain = createEvmChain({ pool, pollMs: 100, coin_contract })
  const { send } = createSender(anvil)
  const [rich, mine] = (await anvil.call<string[]>('eth_accounts')) as [string, string]
  await anvil.call('anvil_setCode', [coin_contract, code])
  await anvil.call('evm_mine')
  const before = await chain.head(new AbortController().signal)
  const balancesAt = async (block: number) =>
    Promise.all(
      [rich, mine].map(async (account) =>
        BigInt(await anvil.call<string>('eth_getBalance', [account, `0x${block.toString(16)}`])),
      ),
    )
  const word = (value: bigint | string) => BigInt(value).toString(16).padStart(64, '0')
  await send({ from: rich, to: coin_contract, data: `0x${word(rich)}${word(mine)}${word(500n)}` })
  await send({ from: rich, to: mine, value: 7n })
  await anvil.call('evm_mine')
  let block: ChainBlock | undefined
  for await (const event of chain.follow(before, AbortSignal.timeout(60_000)))
    if (event.kind === 'blocks') {
      block = event.blocks[0]
      break
    }

  const accounts = [rich, mine].map((account) => Buffer.from(account.slice(2), 'hex'))
  const { movements, touched } = block!.decode({
    accounts: createByteSet(accounts),
    contracts: createByteSet([]),
    tokenAccount: () => [],
  })
  expect(movements.map(({ value }) => value)).toEqual([0n, 500n, 7n])
  for (const { asset } of [...movements, ...touched]) expect(asset).toEqual(evmFamily.native)
  const fees = movements
    .filter(({ ordinal }) => evmFamily.paysFee({ side: 0, ordinal } as never))
    .reduce((sum, { transaction_fee }) => sum + transaction_fee, 0n)
  const [was, is] = [await balancesAt(before.number), await balancesAt(block!.number)]
  expect(is[1]! - was[1]!).toBe(507n)
  expect(is[0]! - was[0]!).toBe(-507n - fees)
  await chain.stop()
})
