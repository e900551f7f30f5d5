import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Anvil, startAnvil } from '../../../devnet/anvil/anvil.ts'
import type { Chain, ChainBlock } from '../../../src/chains/chain.ts'
import { createEvmChain } from '../../../src/chains/evm/chain.ts'
import { evmFamily } from '../../../src/chains/evm/family.ts'
import { createPool } from '../../../src/chains/evm/pool/pool.ts'
import type { Pool } from '../../../src/chains/evm/pool/pool-types.ts'
import { createByteSet } from '../../../src/lib/bytes.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { silentLog } from '../../../src/lib/log.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { contracts, createSender, encode } from './token-contracts.ts'

type Standard = 'ERC20' | 'ERC721' | 'ERC1155'

const never = new AbortController().signal
const multicall = `0x${'ca11'.padStart(40, '0')}`
const bytes = (hex: string) => Buffer.from(hex.slice(2), 'hex')
let anvil: Anvil
let pool: Pool
let chain: Chain
let sender: ReturnType<typeof createSender>
let rich: string
let mine: string

beforeAll(async () => {
  anvil = await startAnvil({ args: ['--no-mining', '--gas-limit', '1000000000'] })
  pool = createPool({
    network: 'test',
    prefix: 'eth',
    upstreams: [{ url: anvil.url }],
    clock: systemClock,
    log: silentLog,
    // An emulated node takes seconds to write out a large block.
    limits: { probeIntervalMs: 100, timeoutMs: 60_000 },
  })
  await waitFor('the node is explored', () => pool.can('debug_trace'))
  chain = createEvmChain({ pool, pollMs: 100, multicall })
  sender = createSender(anvil)
  ;[rich, mine] = (await anvil.call<string[]>('eth_accounts')) as [string, string]
})

afterAll(async () => {
  await chain.stop()
  await pool.stop()
  await anvil.stop()
})

/** Mines what was sent, and gives the block. */
const mineBlock = async (): Promise<ChainBlock> => {
  const before = await chain.head(never)
  await anvil.call('evm_mine')
  for await (const event of chain.follow(before, AbortSignal.timeout(90_000)))
    if (event.kind === 'blocks') return event.blocks[0]!
  throw new Error('no block came')
}

const movementsOf = (block: ChainBlock, accounts: string[], watched: string[] = []) =>
  block.decode({
    accounts: createByteSet(accounts.map(bytes)),
    contracts: createByteSet(watched.map(bytes)),
    tokenAccount: () => [],
  }).movements

it('proves the receipts of a block with more transactions than a short key counts', {
  timeout: 120_000,
}, async () => {
  // Payments that cannot run code: anvil takes a minute to trace so many others.
  const gas = '0x5208'
  for (let value = 1n; value <= 130n; value++)
    await sender.send({ from: rich, to: mine, value, gas })
  const block = await mineBlock()
  const values = movementsOf(block, [mine]).map(({ value }) => value)
  expect(values).toHaveLength(130)
  expect(values.toSorted((a, b) => Number(a - b))).toEqual(
    Array.from({ length: 130 }, (_, index) => BigInt(index + 1)),
  )
})

it('is not confused by logs that no standard has', async () => {
  const babble = await sender.deploy('Babble', rich)
  const transfer = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
  const batch = '0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb'
  const end = `0x${mine.slice(2).padStart(64, '0')}`
  const huge = `0x${'ff'.repeat(64)}`
  const say = (topics: string[], data: string) =>
    sender.send({ from: rich, to: babble, data: encode('say', topics, data) })
  await say([transfer], huge)
  await say([transfer, end], huge)
  await say([transfer, end, end], '0x01')
  await say([batch, end, end, end], huge)
  await say([], '0x')
  await say([transfer, end, end], `0x${'9'.padStart(64, '0')}`)
  const block = await mineBlock()
  expect(movementsOf(block, [mine], [babble])).toMatchObject([
    { value: 9n, asset: { asset_type: 'ASSET_TYPE_ERC20' } },
  ])
})

it('reads many balances in one call with Multicall3, and the same without it', async () => {
  const coin = await sender.deploy('Coin', rich)
  const item = await sender.deploy('Item', rich)
  const multi = await sender.deploy('Multi', rich)
  await sender.send({ from: rich, to: coin, data: encode('mint', mine, 5n) })
  await sender.send({ from: rich, to: item, data: encode('mint', mine, 6n) })
  await sender.send({ from: rich, to: multi, data: encode('mint', mine, 7n, 8n) })
  await mineBlock()
  const asset = (kind: Standard, contract: string, token_id = 0n) => ({
    asset_type: `ASSET_TYPE_${kind}` as const,
    contract_address: bytes(contract),
    token_id,
  })
  const assets = [
    asset('ERC20', coin),
    asset('ERC721', item, 6n),
    asset('ERC721', item, 99n),
    asset('ERC1155', multi, 7n),
    asset('ERC20', item),
    asset('ERC20', mine),
    evmFamily.native,
  ]
  const queries = [mine, rich].flatMap((address) =>
    assets.map((one) => ({ address: bytes(address), asset: one })),
  )
  const read = async (reader: Chain) =>
    (await reader.readBalances(queries, await reader.head(never), never)).map(
      ({ balance }) => balance,
    )
  const plain = await read(chain)
  const native = async (address: string) =>
    BigInt(await anvil.call<string>('eth_getBalance', [address, 'latest']))
  expect(plain).toEqual([
    // The item that does not exist has no owner; the item's contract is no ERC-20.
    ...[5n, 1n, 0n, 8n, null, 0n, await native(mine)],
    ...[0n, 0n, 0n, 0n, null, 0n, await native(rich)],
  ])
  await anvil.call('anvil_setCode', [multicall, contracts.Reader.runtime])
  await anvil.call('evm_mine')
  const calls: string[] = []
  const counted = createEvmChain({
    multicall,
    pool: {
      ...pool,
      request: (request) => {
        calls.push(request.method)
        return pool.request(request)
      },
    },
  })
  expect(await read(counted)).toEqual(plain)
  expect(calls).not.toContain('eth_getBalance')
})

it('proves what a contract is, and says what is wrong where it is not', async () => {
  const verify = (contract: string, kind: Standard) =>
    chain.tokens!.verifyContract!(
      { contract_address: bytes(contract), contract_type: `CONTRACT_TYPE_${kind}` as const },
      never,
    )
  const info = (name: string | null, symbol: string | null, decimals: number | null) => ({
    ok: true,
    info: { name, symbol, decimals },
  })
  const coin = await sender.deploy('Coin', rich)
  const old = await sender.deploy('OldCoin', rich)
  const item = await sender.deploy('Item', rich)
  const multi = await sender.deploy('Multi', rich)
  const relay = await sender.deploy('Relay', rich)
  expect(await verify(coin, 'ERC20')).toEqual(info('Test Coin', 'COIN', 6))
  expect(await verify(old, 'ERC20')).toEqual(info('Old Coin', 'OLD', null))
  expect(await verify(item, 'ERC721')).toEqual(info('Test Item', 'ITEM', null))
  expect(await verify(multi, 'ERC1155')).toEqual(info(null, null, null))
  for (const [contract, kind] of [
    [coin, 'ERC721'],
    [coin, 'ERC1155'],
    [item, 'ERC20'],
    [item, 'ERC1155'],
    [multi, 'ERC20'],
    [relay, 'ERC20'],
  ] as const)
    expect(await verify(contract, kind)).toMatchObject({ ok: false, field: 'contract_type' })
  expect(await verify(mine, 'ERC20')).toMatchObject({ ok: false, field: 'contract_address' })
})

it('refuses a token with impossible decimals or an endless name, and never guesses', async () => {
  const at = (number: number) => `0x${'c0de'.padStart(39, '0')}${number}`
  // Each answers every call alike: with one word, or with a text of 6,000 bytes.
  const codes = [
    '0x61010060005260206000f3',
    '0x60ff60005260206000f3',
    '0x60206000526117706020526117c06000f3',
  ]
  for (const [index, code] of codes.entries()) await anvil.call('anvil_setCode', [at(index), code])
  const verify = (index: number) =>
    chain.tokens!.verifyContract!(
      { contract_address: bytes(at(index)), contract_type: 'CONTRACT_TYPE_ERC20' },
      never,
    )
  const refused = { ok: false, field: 'contract_address' }
  expect(await verify(0)).toEqual({ ...refused, detail: 'decimals() answers more than 255.' })
  expect(await verify(1)).toMatchObject({ ok: true, info: { decimals: 255 } })
  const detail = 'The text of name() and symbol() is too long.'
  expect(await verify(2)).toEqual({ ...refused, detail })
})

it('reads where items are described', async () => {
  const item = await sender.deploy('Item', rich)
  const multi = await sender.deploy('Multi', rich)
  const coin = await sender.deploy('Coin', rich)
  const asset = (kind: Standard, contract: string) => ({
    asset_type: `ASSET_TYPE_${kind}` as const,
    contract_address: bytes(contract),
    token_id: 0x1fn,
  })
  const assets = [asset('ERC721', item), asset('ERC1155', multi), asset('ERC721', coin)]
  expect(await chain.tokens?.readTokenUris?.(assets, never)).toEqual([
    'data:application/json,{"name":"an item"}',
    `ipfs://items/${'1f'.padStart(64, '0')}.json`,
    null,
  ])
})
