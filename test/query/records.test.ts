import { type Hex, numberToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Anvil, startAnvil } from '../../devnet/anvil/anvil.ts'
import { contracts, createSender, encode } from '../chains/evm/token-contracts.ts'
import { createExpected, type Expected, parseExact } from './expected.ts'
import { type QueryApp, startQueryApp } from './query-app.ts'

// The first of the accounts that every anvil begins with.
const account = privateKeyToAccount(
  '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
)
const from = account.address.toLowerCase()
const other = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const unknownHash = `0x${'5e'.repeat(32)}`

describe.each([
  ['a plain chain', []],
  ['a rollup', ['--network', 'optimism']],
])('on %s', (_, args) => {
  const isRollup = args.length > 0
  let anvil: Anvil
  let app: QueryApp
  let expected: Expected
  const made: Record<string, string> = {}

  const raw = async (transaction: object): Promise<string> => {
    const nonce = Number(await anvil.call('eth_getTransactionCount', [from, 'pending']))
    const base = { chainId: 31337, nonce, gas: 100_000n, to: other, value: 7n }
    const signed = await account.signTransaction({ ...base, ...transaction } as never)
    return await anvil.call<string>('eth_sendRawTransaction', [signed])
  }

  beforeAll(async () => {
    anvil = await startAnvil({ args: ['--no-mining', ...args] })
    app = await startQueryApp([anvil.url])
    expected = createExpected(anvil.url)
    const sender = createSender(anvil)
    const coin = await sender.deploy('Coin', from)
    made.mint = await sender.send({ from, to: coin, data: encode('mint', from, 1_000n) })
    made.creation = await sender.send({ from, data: contracts.Item.bytecode })
    const relay = await sender.deploy('Relay', from)
    made.failed = await sender.send({ from, to: relay, data: encode('fail'), value: 5n })
    made.legacy = await raw({ type: 'legacy', gasPrice: 3_000_000_000n })
    made.dear = await raw({ type: 'legacy', gasPrice: 10_000_000_000_000_001n, value: 2n ** 60n })
    made.eip2930 = await raw({
      type: 'eip2930',
      gasPrice: 3_000_000_000n,
      accessList: [{ address: other, storageKeys: [`0x${'01'.repeat(32)}`] }],
    })
    const fees = { maxFeePerGas: 5_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n }
    made.eip1559 = await raw({ type: 'eip1559', ...fees })
    const authorization = await account.signAuthorization({
      chainId: 31337,
      contractAddress: coin as Hex,
      nonce: Number(await anvil.call('eth_getTransactionCount', [from, 'pending'])) + 1,
    })
    made.eip7702 = await raw({ type: 'eip7702', ...fees, authorizationList: [authorization] })
    if (isRollup)
      made.deposit = await anvil.call<string>('eth_sendTransaction', [
        {
          ...{ from: other, to: from, value: '0x5', gas: '0x5208', type: '0x7e' },
          ...{ sourceHash: `0x${'22'.repeat(32)}`, mint: '0x9', isSystemTx: false },
        },
      ])
    await anvil.call('evm_mine')
    made.spray = await anvil.call<string>('eth_sendTransaction', [
      { from, to: coin, data: encode('spray', other, 500n, 1n), gas: '0xfff000' },
    ])
    await anvil.call('evm_setNextBlockTimestamp', [4_000_000_000])
    await anvil.call('evm_mine')
  }, 120_000)
  afterAll(() => anvil.stop())

  const exact = async (operation: string, body: unknown) => {
    const { status, text } = await app.query(operation, body)
    expect({ status, ...(status === 200 ? {} : { text }) }).toEqual({ status: 200 })
    return parseExact(text)
  }

  it('blocks are those of the chain, the first one too', async () => {
    const head = await expected.client.getBlockNumber()
    for (let number = 0n; number <= head; number++)
      expect(await exact('GetBlock', { block_number: Number(number) })).toEqual({
        block: await expected.block(number),
      })
  })

  it('transactions, receipts and logs of every kind are those of the chain', async () => {
    for (const [kind, transaction_hash] of Object.entries(made)) {
      expect(await exact('GetTransaction', { transaction_hash }), kind).toEqual({
        transaction: await expected.transaction(transaction_hash),
      })
      expect(await exact('GetTransactionReceipt', { transaction_hash }), kind).toEqual({
        transaction_receipt: await expected.receipt(transaction_hash),
      })
      expect(await exact('ListLogs', { transaction_hash }), kind).toEqual({
        logs: await expected.logs(transaction_hash),
      })
    }
  })

  it('numbers beyond 2^53 lose nothing', async () => {
    const { text } = await app.query('GetTransaction', { transaction_hash: made.dear })
    expect(text).toContain('"gas_price":10000000000000001,')
    expect(text).toContain(`"value":"${numberToHex(2n ** 60n)}"`)
  })

  it('a contract creation has no receiver, and its receipt the address', async () => {
    const { json } = await app.query('GetTransactionReceipt', { transaction_hash: made.creation })
    const { to, contract_address, status } = json.transaction_receipt
    expect({ to, status }).toEqual({ to: null, status: 1 })
    expect(contract_address).toMatch(/^0x[0-9a-f]{40}$/)
    const other = await app.query('GetTransactionReceipt', { transaction_hash: made.legacy })
    expect(other.json.transaction_receipt.contract_address).toBeNull()
  })

  it('a failed transaction has the status 0 and no logs', async () => {
    const receipt = await app.query('GetTransactionReceipt', { transaction_hash: made.failed })
    expect(receipt.json.transaction_receipt.status).toBe(0)
    const logs = await app.query('ListLogs', { transaction_hash: made.failed })
    expect(logs.json).toEqual({ logs: [] })
  })

  it('500 logs of one transaction come in the order of the chain', async () => {
    const { json } = await app.query('ListLogs', { transaction_hash: made.spray })
    expect(json.logs).toHaveLength(500)
    expect(json.logs.map(({ log_index }: { log_index: number }) => log_index)).toEqual(
      Array.from({ length: 500 }, (_, index) => index),
    )
  })

  it.runIf(isRollup)('a deposit has neither price nor signature', async () => {
    const { json } = await app.query('GetTransaction', { transaction_hash: made.deposit })
    expect(json.transaction).toMatchObject({ gas_price: 0, r: '0x0', s: '0x0', v: '0x0' })
    const receipt = await app.query('GetTransactionReceipt', { transaction_hash: made.deposit })
    expect(receipt.json.transaction_receipt.effective_gas_price).toBe(0)
  })

  it('many transactions come in the order of the request, without the unknown ones', async () => {
    const hashes = Object.values(made).reverse()
    const asked = [hashes[0], unknownHash, ...hashes, hashes[0]]
    const { json } = await app.query('ListTransactions', { transaction_hashes: asked })
    const answered = json.transactions.map(
      (one: { transaction_hash: string }) => one.transaction_hash,
    )
    expect(answered).toEqual([hashes[0], ...hashes, hashes[0]])
    const none = await app.query('ListTransactions', { transaction_hashes: [unknownHash] })
    expect(none.json).toEqual({ transactions: [] })
  })

  it('a hash in upper case is the same hash', async () => {
    const transaction_hash = `0x${made.legacy!.slice(2).toUpperCase()}`
    const { json } = await app.query('GetTransaction', { transaction_hash })
    expect(json.transaction.transaction_hash).toBe(made.legacy)
  })

  it.each([
    ['GetBlock', { block_number: 1_000_000 }, 'BLOCK_NOT_FOUND'],
    ['GetBlock', { block_number: Number.MAX_SAFE_INTEGER }, 'BLOCK_NOT_FOUND'],
    ['GetTransaction', { transaction_hash: unknownHash }, 'TRANSACTION_NOT_FOUND'],
    ['GetTransactionReceipt', { transaction_hash: unknownHash }, 'TRANSACTION_NOT_FOUND'],
    ['ListLogs', { transaction_hash: unknownHash }, 'TRANSACTION_NOT_FOUND'],
    ['ListInternalTransactions', { transaction_hash: unknownHash }, 'TRANSACTION_NOT_FOUND'],
    ['GetPendingTransaction', { transaction_hash: unknownHash }, 'PENDING_TRANSACTION_NOT_FOUND'],
  ])('%s of what is not there is 404', async (operation, body, reason) => {
    const { status, json } = await app.query(operation, body)
    expect({ status, reason: json.reason }).toEqual({ status: 404, reason })
  })

  it('a pending transaction is in no block', async () => {
    const transaction_hash = await raw({ type: 'eip1559', maxFeePerGas: 5_000_000_000n })
    const { status, json } = await app.query('GetTransaction', { transaction_hash })
    expect(status).toBe(404)
    expect(json.detail).toContain('GetPendingTransaction')
    const receipt = await app.query('GetTransactionReceipt', { transaction_hash })
    expect(receipt.status).toBe(404)
    const { pending_transaction } = (await exact('GetPendingTransaction', {
      transaction_hash,
    })) as { pending_transaction: { record_time: string } }
    expect(pending_transaction).toEqual(
      await expected.pending(transaction_hash, pending_transaction.record_time),
    )
    await anvil.call('anvil_dropTransaction', [transaction_hash])
  })
})
