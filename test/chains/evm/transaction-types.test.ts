// Every type of transaction that the local node can run: what the records of a block say of an account, with
// the fees that it paid, is the change of its balance at the node.
import { mnemonicToAccount } from 'viem/accounts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Anvil, startAnvil } from '../../../devnet/anvil/anvil.ts'
import type { ChainBlock } from '../../../src/chains/chain.ts'
import { createEvmChain } from '../../../src/chains/evm/chain.ts'
import { createByteSet } from '../../../src/lib/bytes.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { poolOf } from './test-pool.ts'
import { contracts, encode } from './token-contracts.ts'

const never = new AbortController().signal
const mnemonic = 'test test test test test test test test test test test junk'
const account = (addressIndex: number) => mnemonicToAccount(mnemonic, { addressIndex })
const receiver = `0x${'5e'.repeat(20)}`
const bytes = (hex: string) => Buffer.from(hex.slice(2), 'hex')

type Sent = { hash: string; from: string }

const open = async (args: string[]) => {
  const anvil = await startAnvil({ args: ['--no-mining', ...args] })
  const pool = poolOf(anvil.url)
  const chain = createEvmChain({ pool, pollMs: 100 })
  onTestFinished(async () => {
    await chain.stop()
    await pool.stop()
    await anvil.stop()
  })
  await waitFor('the node is explored', () => pool.can('block_receipts') && pool.can('debug_trace'))
  const mine = async (): Promise<ChainBlock> => {
    const before = await chain.head(never)
    await anvil.call('evm_mine')
    for await (const event of chain.follow(before, AbortSignal.timeout(60_000)))
      if (event.kind === 'blocks') return event.blocks[0]!
    throw new Error('no block came')
  }
  return { anvil, mine }
}

const send = async (
  anvil: Anvil,
  transaction: { from: string } & Record<string, unknown>,
): Promise<Sent> => ({
  hash: await anvil.call<string>('eth_sendTransaction', [{ gas: '0x2dc6c0', ...transaction }]),
  from: transaction.from.toLowerCase(),
})

/** Compares the records of a block with the balances before and after it. */
async function expectChanges(
  { anvil, mine }: Awaited<ReturnType<typeof open>>,
  sendAll: () => Promise<Sent[]>,
  accounts: readonly string[],
) {
  const before = await anvil.call<string>('eth_blockNumber')
  const sent = await sendAll()
  const block = await mine()
  const { movements } = block.decode({
    accounts: createByteSet(accounts.map(bytes)),
    contracts: createByteSet([]),
    tokenAccount: () => [],
  })
  const hash = (index: number) => movements[index]!.transaction_hash.toString('hex')
  for (const one of accounts) {
    const read = async (at: string) => BigInt(await anvil.call<string>('eth_getBalance', [one, at]))
    const change = (await read(`0x${block.number.toString(16)}`)) - (await read(before))
    let sum = 0n
    const paid = new Set<string>()
    for (const [index, movement] of movements.entries()) {
      const { from, to, value, failed, transaction_fee } = movement
      if (!failed && from.equals(bytes(one))) sum -= value
      if (!failed && to.equals(bytes(one))) sum += value
      const isSender = sent.some(
        ({ hash: of, from: by }) => of === `0x${hash(index)}` && by === one.toLowerCase(),
      )
      // Once for each transaction.
      if (isSender && !paid.has(hash(index))) sum -= transaction_fee
      if (isSender) paid.add(hash(index))
    }
    expect({ account: one, sum }).toEqual({ account: one, sum: change })
  }
  return movements
}

describe('the records and fees of a block are the changes of balances', () => {
  it('on Ethereum: legacy, access list, dynamic fee, set code, creation, internal payments, failures', async () => {
    const world = await open([])
    const { anvil } = world
    const [a, b, c, d, e] = [0, 1, 2, 3, 4].map((index) => account(index).address) as string[]
    await send(anvil, { from: e!, data: contracts.Relay.bytecode })
    await world.mine()
    const { transactions } = await anvil.call<{ transactions: string[] }>('eth_getBlockByNumber', [
      'latest',
      false,
    ])
    const { contractAddress: relay } = await anvil.call<{ contractAddress: string }>(
      'eth_getTransactionReceipt',
      [transactions[0]],
    )
    const chainId = Number(await anvil.call<string>('eth_chainId'))
    const delegating = account(5)
    await expectChanges(world, async () => {
      const authorization = await delegating.signAuthorization!({
        contractAddress: relay as `0x${string}`,
        chainId,
        nonce: 0,
      })
      const raw = await account(6).signTransaction({
        type: 'eip7702',
        chainId,
        nonce: 0,
        to: delegating.address,
        value: 11n,
        gas: 200_000n,
        maxFeePerGas: 5_000_000_000n,
        maxPriorityFeePerGas: 1_000_000_000n,
        authorizationList: [authorization],
      })
      return [
        await send(anvil, { from: a!, to: receiver, value: '0x5', gasPrice: '0x77359400' }),
        await send(anvil, {
          ...{ from: b!, to: receiver, value: '0x6', gasPrice: '0x77359400', type: '0x1' },
          accessList: [{ address: receiver, storageKeys: [`0x${'00'.repeat(32)}`] }],
        }),
        await send(anvil, {
          ...{ from: c!, to: receiver, value: '0x7', type: '0x2' },
          ...{ maxFeePerGas: '0x77359400', maxPriorityFeePerGas: '0x1' },
        }),
        await send(anvil, { from: d!, to: relay, value: '0x9', data: encode('pass', receiver) }),
        await send(anvil, { from: d!, to: relay, value: '0x3', data: encode('fail') }),
        await send(anvil, { from: e!, data: contracts.Coin.bytecode }),
        {
          hash: await anvil.call<string>('eth_sendRawTransaction', [raw]),
          from: account(6).address.toLowerCase(),
        },
      ]
    }, [a!, b!, c!, d!, e!, delegating.address, account(6).address, receiver, relay])
  })

  it('on an OP-style rollup: deposits that mint, with and without a value, and payments', async () => {
    const world = await open(['--network', 'optimism'])
    const { anvil } = world
    const [a, b, c] = [0, 1, 2].map((index) => account(index).address) as string[]
    const deposit = { type: '0x7e', sourceHash: `0x${'22'.repeat(32)}`, isSystemTx: false }
    await expectChanges(
      world,
      async () => [
        await send(anvil, { from: a!, to: receiver, value: '0x5', mint: '0x9', ...deposit }),
        await send(anvil, {
          ...{ from: b!, to: receiver, value: '0x0', mint: '0x8', ...deposit },
          sourceHash: `0x${'33'.repeat(32)}`,
        }),
        await send(anvil, { from: c!, to: receiver, value: '0x7' }),
      ],
      [a!, b!, c!, receiver],
    )
  })
})
