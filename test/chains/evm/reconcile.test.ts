import { randomUUID } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { startAnvil } from '../../../devnet/anvil/anvil.ts'
import { createEvmChain } from '../../../src/chains/evm/chain.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { silentLog } from '../../../src/lib/log.ts'
import { startTracker } from '../../../src/workers/tracker/tracker.ts'
import { freshDatabase } from '../../helpers/database.ts'
import { oneChain } from '../../helpers/one-chain.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { createWalletBench } from '../../helpers/wallets.ts'
import { hostileCodes, setInLedger, silentCodes } from './hostile-contracts.ts'
import { poolOf } from './test-pool.ts'
import { createSender } from './token-contracts.ts'

const { db, pool: database } = await freshDatabase()
const anvil = await startAnvil({ args: ['--no-mining'] })
const pool = poolOf(anvil.url)
const chain = createEvmChain({ pool, pollMs: 100 })
const { send } = createSender(anvil)
const [rich, mine] = (await anvil.call<string[]>('eth_accounts')) as [string, string]
const bench = await createWalletBench(db, 'c')
bench.installation.chains = oneChain(bench.network_id, () => chain)
afterAll(async () => {
  await pool.stop()
  await anvil.stop()
})

const place = async (address: string, code: string) => {
  await anvil.call('anvil_setCode', [address, code])
  await anvil.call('evm_mine')
}

it('balances that change without an event are corrected, and the reason is kept', async () => {
  const rebasing = `0x${'a1'.repeat(20)}`
  const ledger = `0x${'b2'.repeat(20)}`
  await place(rebasing, silentCodes.rebasing)
  await place(ledger, silentCodes.ledger)
  const caller = await bench.createCaller()
  const confirmation = 2
  const { wallet_id } = await caller.call('RegisterWallet', {
    name: 'w',
    address: mine,
    confirmation,
  })
  for (const contract_address of [rebasing, ledger])
    await caller.call('RegisterContract', {
      contract_address,
      contract_type: 'CONTRACT_TYPE_ERC20',
    })
  const warnings: object[] = []
  const tracker = startTracker({
    ...{ db, clock: systemClock, holder: randomUUID(), name: { chain: 'c', network: 'mainnet' } },
    log: { ...silentLog, warn: (fields) => void warnings.push(fields) },
    ...{ network_id: bench.network_id, chain, ttlMs: 2_000 },
    reconcile: { firstMs: 50, everyMs: 50 },
  })
  const shown = async (asset_type: string) => {
    const { assets } = await caller.call('ListAssets', { wallet_id, asset_type })
    return new Map(
      assets.map((asset: { balance: string; is_unreadable: boolean; asset_metadata: object }) => {
        const [token] = Object.values(asset.asset_metadata) as { contract_address: string }[]
        return [token?.contract_address ?? '', asset]
      }),
    ) as Map<string, { balance: string; is_unreadable: boolean }>
  }
  const settle = async () => {
    await anvil.call('evm_mine')
    await anvil.call('evm_mine')
  }
  try {
    await waitFor('it begins', () => tracker.status().block_number !== null)
    await settle()
    // No operation asks for them: the coin was there before the registration, and the contract says nothing.
    await waitFor('the coin that was there', async () => (await shown('ASSET_TYPE_C')).size === 1)
    await waitFor('the token that rebases', async () =>
      (await shown('ASSET_TYPE_ERC20')).has(rebasing),
    )
    expect((await shown('ASSET_TYPE_ERC20')).has(ledger)).toBe(false)
    // Open work would read the changed balances before the comparison finds them.
    await settle()
    await waitFor('no work is open', async () => {
      const { rowCount } = await database.query('select from balance_change where wallet_id = $1', [
        wallet_id,
      ])
      return rowCount === 0
    })

    await send({ from: rich, to: ledger, data: setInLedger(mine, 777n) })
    await anvil.call('anvil_setBalance', [mine, '0x1234'])
    await settle()
    await waitFor(
      'the ledger',
      async () => (await shown('ASSET_TYPE_ERC20')).get(ledger)?.balance === '777',
    )
    await waitFor('the coin', async () => (await shown('ASSET_TYPE_C')).get('')?.balance === '4660')
    // The block before the newest one, which has two confirmations.
    const head = Number(await anvil.call<string>('eth_blockNumber'))
    await waitFor(
      'the rebasing token',
      async () => (await shown('ASSET_TYPE_ERC20')).get(rebasing)?.balance === String(head - 1),
    )

    await anvil.call('anvil_setCode', [ledger, hostileCodes.stack])
    await settle()
    await waitFor(
      'it is unreadable',
      async () => (await shown('ASSET_TYPE_ERC20')).get(ledger)?.is_unreadable === true,
    )
    expect((await shown('ASSET_TYPE_ERC20')).get(ledger)?.balance).toBe('777')
    await anvil.call('anvil_setCode', [ledger, silentCodes.ledger])
    await settle()
    await waitFor(
      'it can be read again',
      async () => (await shown('ASSET_TYPE_ERC20')).get(ledger)?.is_unreadable === false,
    )

    const { rows } = await database.query(
      'select distinct reason from balance_difference where wallet_id = $1 order by reason',
      [wallet_id],
    )
    expect(rows.map(({ reason }) => reason)).toEqual([
      'no balance was stored: it is older than the registration, or no event has named the address',
      'the coin moved without a transaction or trace that names the address',
      'the contract answers again',
      'the contract fails',
      'the token changed it without a Transfer event',
    ])
    expect(tracker.status().reconciliation?.repaired).toBeGreaterThanOrEqual(5)
    const { rows: found } = await database.query(
      'select expected, found from balance_difference where wallet_id = $1',
      [wallet_id],
    )
    expect(found).toContainEqual({ expected: 0n, found: 777n })
    // One line per page, which shows its first difference.
    expect(warnings).toContainEqual(expect.objectContaining({ reason: expect.any(String) }))
  } finally {
    await tracker.stop()
  }
})
