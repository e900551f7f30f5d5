import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startAnvil } from '../../../devnet/anvil/anvil.ts'
import { createCanonical } from '../../../src/chains/evm/canonical/canonical.ts'
import { createEvmChain } from '../../../src/chains/evm/chain.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { silentLog } from '../../../src/lib/log.ts'
import { findCursor } from '../../../src/storage/tracking/blocks.ts'
import { startTracker } from '../../../src/workers/tracker/tracker.ts'
import { isBalanceDue } from '../../helpers/balance-due.ts'
import { freshDatabase } from '../../helpers/database.ts'
import { oneChain } from '../../helpers/one-chain.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { type Caller, createWalletBench, type Outcome } from '../../helpers/wallets.ts'
import { poolOf } from './test-pool.ts'
import { createSender, encode } from './token-contracts.ts'

const { db } = await freshDatabase()
const anvil = await startAnvil({ args: ['--no-mining'] })
const pool = poolOf(anvil.wsUrl)
const canonical = createCanonical({ pool, prefix: 'eth', clock: systemClock, log: silentLog })
const chain = createEvmChain({ pool, canonical, pollMs: 200 })
const { send, deploy } = createSender(anvil)
const accounts = await anvil.call<string[]>('eth_accounts')
const [rich, mine, friend, stranger] = accounts as [string, string, string, string]
const bench = await createWalletBench(db, 'c')
bench.installation.chains = oneChain(bench.network_id, () => chain)
let caller: Caller
let wallet_id: string
let tracker: ReturnType<typeof startTracker>
let coin: string
let item: string
let multi: string
let relay: string

const mineBlock = () => anvil.call('evm_mine')

const settled = async () => {
  const head = await anvil.call<{ hash: string; number: string }>('eth_getBlockByNumber', [
    'latest',
    false,
  ])
  await waitFor('the tracker is at the head', async () => {
    const cursor = await findCursor(db, bench.network_id)
    return cursor?.block_hash.toString('hex') === head.hash.slice(2)
  })
  await waitFor(
    'no balance is due',
    async () => !(await isBalanceDue(db, bench.network_id, Number(head.number))),
  )
}

const transfersOf = async (transaction_hash: string): Promise<Outcome[]> =>
  (await caller.call('ListTransfers', { transaction_hash, page_size: 100 })).transfers.toReversed()

const assets = async (kind: string): Promise<Outcome[]> =>
  (await caller.call('ListAssets', { wallet_id, asset_type: `ASSET_TYPE_${kind}`, page_size: 100 }))
    .assets

const expectNativeBalance = async () => {
  const [asset] = await assets('C')
  expect(asset.balance).toBe(
    BigInt(await anvil.call<string>('eth_getBalance', [mine, 'latest'])).toString(),
  )
}

beforeAll(async () => {
  await waitFor('the node is explored', () => pool.can('debug_trace'))
  caller = await bench.createCaller()
  const wallet = await caller.call('RegisterWallet', { name: 'w', address: mine, confirmation: 1 })
  wallet_id = wallet.wallet_id
  coin = await deploy('Coin', rich)
  item = await deploy('Item', rich)
  multi = await deploy('Multi', rich)
  relay = await deploy('Relay', rich)
  for (const [contract_address, kind] of [
    [coin, 'ERC20'],
    [item, 'ERC721'],
    [multi, 'ERC1155'],
  ])
    await caller.call('RegisterContract', {
      contract_address,
      contract_type: `CONTRACT_TYPE_${kind}`,
    })
  tracker = startTracker({
    db,
    clock: systemClock,
    log: silentLog,
    holder: randomUUID(),
    network_id: bench.network_id,
    name: { chain: 'c', network: 'mainnet' },
    chain,
    ttlMs: 5_000,
  })
  await settled()
})

afterAll(async () => {
  await tracker.stop()
  await chain.stop()
  canonical.stop()
  await pool.stop()
  await anvil.stop()
})

it('lists a payment with its fee and its nonce, and the balance after it', async () => {
  const hash = await send({ from: mine, to: friend, value: 12_345n })
  await mineBlock()
  await settled()
  const receipt = await anvil.call<Record<string, string>>('eth_getTransactionReceipt', [hash])
  const block = await anvil.call<Record<string, string>>('eth_getBlockByNumber', ['latest', false])
  expect(await transfersOf(hash)).toEqual([
    {
      transaction_hash: hash,
      asset_type: 'ASSET_TYPE_C',
      nonce: '0',
      from: mine,
      to: friend,
      value: '12345',
      transaction_fee: (BigInt(receipt.gasUsed!) * BigInt(receipt.effectiveGasPrice!)).toString(),
      transfer_state: 'TRANSFER_STATE_SUCCESS',
      block_number: Number(block.number),
      block_timestamp: Number(block.timestamp),
      verified: true,
      transfer_metadata: {},
      transfer_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      wallet_id: expect.any(String),
      direction: 'TRANSFER_DIRECTION_OUTGOING',
      fee_paid: (BigInt(receipt.gasUsed!) * BigInt(receipt.effectiveGasPrice!)).toString(),
      transfer_time: new Date(Number(block.timestamp) * 1000).toISOString(),
      position: 1,
    },
  ])
  await expectNativeBalance()
})

it('lists ERC-20 transfers of a registered contract, and none of nothing', async () => {
  const other = await deploy('Coin', rich)
  const minted = await send({ from: rich, to: coin, data: encode('mint', mine, 1_000n) })
  const unknown = await send({ from: rich, to: other, data: encode('mint', mine, 1_000n) })
  await mineBlock()
  const nothing = await send({ from: rich, to: coin, data: encode('transfer', mine, 0n) })
  const paid = await send({ from: mine, to: coin, data: encode('transfer', friend, 400n) })
  await mineBlock()
  await settled()
  const erc20 = { contract_address: coin, name: 'Test Coin', symbol: 'COIN', decimals: 6 }
  const common = { asset_type: 'ASSET_TYPE_ERC20', transfer_metadata: { erc20 } }
  expect(await transfersOf(minted)).toMatchObject([{ ...common, to: mine, value: '1000' }])
  // The fee counts with the record of the transaction itself, which sends no coin.
  expect(await transfersOf(paid)).toMatchObject([
    {
      asset_type: 'ASSET_TYPE_C',
      from: mine,
      to: coin,
      value: '0',
      fee_paid: expect.stringMatching(/^[1-9]/),
    },
    { ...common, from: mine, to: friend, value: '400', fee_paid: '0' },
  ])
  expect(await transfersOf(nothing)).toEqual([])
  expect(await transfersOf(unknown)).toEqual([])
  expect(await assets('ERC20')).toMatchObject([{ balance: '600', asset_metadata: { erc20 } }])
  await expectNativeBalance()
})

it('lists items and kinds of collections, one record for each', async () => {
  await send({ from: rich, to: item, data: encode('mint', mine, 7n) })
  await send({ from: rich, to: multi, data: encode('mint', mine, 1n, 10n) })
  await send({ from: rich, to: multi, data: encode('mint', mine, 2n, 20n) })
  await mineBlock()
  const away = await send({ from: mine, to: item, data: encode('transferFrom', mine, friend, 7n) })
  const many = await send({
    from: mine,
    to: multi,
    data: encode('transferMany', friend, [1n, 2n, 1n], [3n, 4n, 0n]),
  })
  await mineBlock()
  await settled()
  expect(await transfersOf(away)).toMatchObject([
    { asset_type: 'ASSET_TYPE_C', value: '0' },
    {
      asset_type: 'ASSET_TYPE_ERC721',
      value: '1',
      transfer_metadata: { erc721: { contract_address: item, token_id: '7', name: 'Test Item' } },
    },
  ])
  const kinds = (await transfersOf(many)).map(({ value, transfer_metadata }) => [
    transfer_metadata.erc1155?.token_id,
    value,
  ])
  expect(kinds).toEqual([
    [undefined, '0'],
    ['1', '3'],
    ['2', '4'],
  ])
  expect((await assets('ERC721')).map(({ balance }) => balance)).toEqual(['0'])
  expect((await assets('ERC1155')).map(({ balance }) => balance).toSorted()).toEqual(
    ['16', '7'].toSorted(),
  )
})

it('lists native coin that moved inside calls, and only what did move', async () => {
  const passed = await send({ from: rich, to: relay, data: encode('pass', mine), value: 11n })
  const vain = await send({ from: rich, to: relay, data: encode('passInVain', mine), value: 12n })
  const through = await send({ from: rich, to: relay, data: encode('delegate', mine), value: 13n })
  const ended = await send({ from: rich, to: relay, data: encode('makeAndEnd', mine), value: 14n })
  await mineBlock()
  await settled()
  const values = async (hash: string) => (await transfersOf(hash)).map(({ value }) => value)
  expect(await values(passed)).toEqual(['11'])
  expect(await values(vain)).toEqual([])
  expect(await values(through)).toEqual(['13'])
  expect(await values(ended)).toEqual(['14'])
  await expectNativeBalance()
})

it('lists failed transactions of a tracked sender only', async () => {
  const mineFailed = await send({ from: mine, to: relay, data: encode('fail'), value: 5n })
  const otherFailed = await send({
    from: rich,
    to: coin,
    data: encode('transfer', mine, 1n << 200n),
  })
  await mineBlock()
  await settled()
  expect(await transfersOf(mineFailed)).toMatchObject([
    { transfer_state: 'TRANSFER_STATE_FAILED', from: mine, to: relay, value: '5' },
  ])
  expect(await transfersOf(otherFailed)).toEqual([])
  await expectNativeBalance()
})

it('lists the endowment of a contract that a tracked sender makes', async () => {
  const made = await deploy('Relay', mine, 21n)
  await settled()
  const { transfers } = await caller.call('ListTransfers', { wallet_id, page_size: 1 })
  expect(transfers).toMatchObject([{ from: mine, to: made, value: '21' }])
  await expectNativeBalance()
})

it('takes back what a reorganization dropped and lists what came in its place', async () => {
  const old = await send({ from: rich, to: mine, value: 1_000n })
  await mineBlock()
  await mineBlock()
  await settled()
  expect(await transfersOf(old)).toHaveLength(1)
  const instead = { from: stranger, to: mine, value: '0x7d0' }
  await anvil.call('anvil_reorg', [2, [[instead, 0]]])
  await mineBlock()
  await settled()
  expect(await transfersOf(old)).toEqual([])
  const { transfers } = await caller.call('ListTransfers', { wallet_id, page_size: 1 })
  expect(transfers).toMatchObject([{ from: stranger, to: mine, value: '2000' }])
  await expectNativeBalance()
  expect(tracker.status().reorganizations).toBe(1)
})
