import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { createTrackedBenches, listAll } from '../../../test/helpers/tracked-harness.ts'
import type { Outcome } from '../../../test/helpers/wallets.ts'
import type { WalletService } from '../../contract/variant.ts'

const database = await freshDatabase()
const {
  startBench,
  settled,
  addWebhook,
  notified: notificationsOf,
} = createTrackedBenches(database)

/** The rule of docs/webhooks.md: what records of the native coin do to what they are seen from. */
const sumOf = (records: readonly Outcome[]): bigint =>
  records.reduce((sum, { direction, value, fee_paid }) => {
    const sign = { TRANSFER_DIRECTION_INCOMING: 1n, TRANSFER_DIRECTION_OUTGOING: -1n }[
      direction as string
    ]
    return sum + (sign ?? 0n) * BigInt(value) - BigInt(fee_paid)
  }, 0n)

describe.each<WalletService>(['t', 's', 'p', 'c'])('a transfer in %s', (service) => {
  it('has an id that both ends, lists and notifications share, and no other transfer has', async () => {
    const { bench, caller, start } = await startBench(service)
    const { chain, account, address } = bench
    const wallet = async (first: number, second: number) => {
      const { wallet_id } = await caller.call('RegisterWallet', {
        name: 'w',
        address: address(first),
      })
      await caller.call('RegisterAddress', { wallet_id, address: address(second) })
      return wallet_id as string
    }
    const [mine, theirs] = [await wallet(1, 2), await wallet(3, 4)]
    const webhook_id = await addWebhook(bench, caller, 0)
    start()
    await settled(bench)
    const equal = { from: account(1), to: account(3), value: 7n }
    chain.mine([
      { payer: account(1), fee: 5n, movements: [equal, equal] },
      {
        payer: account(2),
        fee: 3n,
        movements: [
          { from: account(2), to: account(1), value: 10n },
          { from: account(2), to: account(9), value: 1n },
        ],
      },
    ])
    await settled(bench)
    const [sent, received] = [
      await listAll(caller, { wallet_id: mine }),
      await listAll(caller, { wallet_id: theirs }),
    ]
    const idsOf = (records: readonly Outcome[]) => records.map(({ transfer_id }) => transfer_id)
    const payments = sent.filter(({ value }) => value === '7')
    expect(new Set(idsOf(payments)).size).toBe(2)
    expect(idsOf(payments)).toEqual(idsOf(received))
    expect(payments.map(({ direction }) => direction)).toEqual(
      Array(2).fill('TRANSFER_DIRECTION_OUTGOING'),
    )
    expect(received.map(({ direction }) => direction)).toEqual(
      Array(2).fill('TRANSFER_DIRECTION_INCOMING'),
    )
    const block = chain.canonical().at(-1)!
    for (const record of [...sent, ...received]) {
      expect(record.transfer_time).toBe(new Date(block.time).toISOString())
      expect(Number(record.block_number)).toBe(block.number)
    }
    const positions = sent.map(({ position }) => Number(position))
    expect(positions).toEqual(positions.toSorted((a, b) => b - a))

    expect(sumOf(sent)).toBe(-14n - 5n - 3n - 1n)
    expect(sumOf(received)).toBe(14n)
    expect(sumOf(await listAll(caller, { address: address(1) }))).toBe(-14n - 5n + 10n)
    expect(sumOf(await listAll(caller, { address: address(2) }))).toBe(-11n - 3n)
    const inside = sent.filter(({ value }) => value === '10')
    expect(inside.map(({ direction }) => direction)).toEqual(
      service === 't'
        ? ['TRANSFER_DIRECTION_INCOMING', 'TRANSFER_DIRECTION_OUTGOING']
        : ['TRANSFER_DIRECTION_INTERNAL'],
    )

    const notified = (await notificationsOf(webhook_id)).flatMap(
      ({ data }) => data.transfers,
    ) as Outcome[]
    const keyOf = ({ wallet_id, transfer_id, direction }: Outcome) =>
      [wallet_id, transfer_id, direction].join()
    expect(notified.map(keyOf).toSorted()).toEqual([...sent, ...received].map(keyOf).toSorted())
    expect(sumOf(notified.filter(({ wallet_id }) => wallet_id === mine))).toBe(sumOf(sent))
    expect(sumOf(notified)).toBe(-5n - 3n - 1n)

    // Confirmed, so that the balance includes them.
    for (let block = 0; block < 12; block++) chain.mine()
    await settled(bench)
    const asset = { wallet_id: mine, asset_type: `ASSET_TYPE_${service.toUpperCase()}` }
    const points: Outcome[] = []
    let page_token = ''
    do {
      const request = { ...asset, page_size: 2, ...(page_token && { page_token }) }
      const page = await caller.call('ListBalanceHistory', request)
      points.push(...page.points)
      page_token = page.pagination.next_page_token
    } while (page_token)
    expect(points.map(({ transfer_id }) => transfer_id)).toEqual(idsOf(sent))
    expect(points.reduce((sum, { change }) => sum + BigInt(change), 0n)).toBe(sumOf(sent))
    const { assets } = await caller.call('ListAssets', { ...asset, is_aggregated: true })
    expect(points[0]!.balance).toBe(assets[0].balance)
    for (const [index, { balance, change }] of points.slice(0, -1).entries())
      expect(`${BigInt(balance) - BigInt(change)}`).toBe(points[index + 1]!.balance)
  })

  it('to itself is seen once in each direction, or once in both', async () => {
    const { bench, caller, start } = await startBench(service)
    const { chain, account, address } = bench
    await caller.call('RegisterWallet', { name: 'w', address: address(1) })
    start()
    await settled(bench)
    const movements = [{ from: account(1), to: account(1), value: 10n }]
    chain.mine([{ payer: account(1), fee: 2n, movements }])
    await settled(bench)
    const records = await listAll(caller, { address: address(1) })
    expect(sumOf(records)).toBe(-2n)
    expect(new Set(records.map(({ transfer_id }) => transfer_id)).size).toBe(1)
  })
})

describe('a transfer in c', () => {
  it('keeps its id in whichever block it is included, back and forth', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account, address } = bench
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: address(1) })
    const webhook_id = await addWebhook(bench, caller, 1)
    start()
    await settled(bench)
    const equal = { from: account(9), to: account(1), value: 7n }
    const payment = { hash: Buffer.alloc(32, 5), movements: [equal, equal] }
    const other = { movements: [{ from: account(9), to: account(1), value: 1n }] }
    chain.mine([payment])
    await settled(bench)
    // In a later block at another index, then in the first block again.
    chain.reorganize(1, [[other], [other, payment]])
    await settled(bench)
    chain.reorganize(2, [[payment], [], []])
    await settled(bench)
    const listed = await listAll(caller, { wallet_id })
    expect(listed).toHaveLength(2)
    const words = (await notificationsOf(webhook_id))
      .flatMap(({ data }) => data.transfers as Outcome[])
      .filter(({ value }) => value === '7')
      .map(({ transfer_id, transfer_state }) => [transfer_id, transfer_state])
    const [second, first] = listed.map(({ transfer_id }) => transfer_id)
    expect(first).not.toBe(second)
    const wordsOf = (id: string) => words.filter(([one]) => one === id).map(([, state]) => state)
    expect(wordsOf(first)).toEqual(wordsOf(second))
    expect(wordsOf(first).filter((state) => state === 'TRANSFER_STATE_REORGED')).toHaveLength(2)
    expect(words).toHaveLength(10)
  })

  it('is of the type as which the organization has registered the contract', async () => {
    const { bench, caller, start } = await startBench('c')
    const { chain, account, address } = bench
    chain.addToken(account(77), 'CONTRACT_TYPE_ERC20')
    const contract = { contract_address: address(77), contract_type: 'CONTRACT_TYPE_ERC20' }
    await caller.call('RegisterContract', contract)
    // Without decimals() nothing says where the point is.
    expect((await caller.call('ListContracts')).contracts).toEqual([
      { ...contract, contract_metadata: null },
    ])
    const { wallet_id } = await caller.call('RegisterWallet', { name: 'w', address: address(1) })
    start()
    await settled(bench)
    const moved = (kind: 'ERC20' | 'ERC721' | 'ERC1155', token_id: bigint) => ({
      to: account(1),
      value: 1n,
      asset: { asset_type: `ASSET_TYPE_${kind}` as const, contract_address: account(77), token_id },
    })
    chain.mine([{ movements: [moved('ERC721', 5n), moved('ERC20', 0n)] }])
    await settled(bench)
    const [record, ...others] = await listAll(caller, { wallet_id })
    expect(others).toEqual([])
    expect(record.transfer_metadata).toEqual({
      erc20: { contract_address: address(77), name: '', symbol: '' },
    })
  })
})
