import { describe, expect, it, onTestFinished } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import {
  createTrackedBenches,
  listAll,
  type TrackedBench,
} from '../../../test/helpers/tracked-harness.ts'
import { waitFor } from '../../../test/helpers/wait-for.ts'
import type { Caller } from '../../../test/helpers/wallets.ts'
import type { OperationError } from '../../contract/errors/errors.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { startImporter } from '../jobs/importer.ts'

const database = await freshDatabase()
const { db, pool } = database
const { startBench, settled } = createTrackedBenches(database)

describe.each(['s', 't'] as const)(
  'a token that is imported for all addresses in %s',
  (service) => {
    const asset_type = service === 's' ? ('ASSET_TYPE_S' as const) : ('ASSET_TYPE_T' as const)
    const texts =
      service === 's'
        ? ['0x5::coral::CORAL', '0x6::pearl::PEARL']
        : [`0:${'5'.repeat(64)}`, `0:${'6'.repeat(64)}`]

    const startTokens = async () => {
      const bench = await startBench(service)
      const { chain, family } = bench.bench
      const tokens = texts.map((text) => {
        const parsed = family.parseToken!(text)
        if (!parsed.ok) throw new Error(parsed.detail)
        const contract_address = parsed.bytes
        chain.addToken(contract_address, 'token', { decimals: 6 })
        const token_address = family.formatToken!(contract_address)
        return { token_address, asset: { asset_type, contract_address, token_id: 0n } }
      })
      return { ...bench, token: tokens[0]!, other: tokens[1]! }
    }
    const startImports = ({ bench }: TrackedBench) => {
      const importer = startImporter({
        ...{ db, clock: systemClock, log: silentLog },
        ...{ network_id: bench.network_id, chain: bench.chain, pollMs: 20 },
      })
      onTestFinished(importer.stop)
      return importer
    }
    const register = async (caller: Caller, fields: object = {}): Promise<string> => {
      const confirmation = service === 's' ? { confirmation: 1 } : {}
      return (await caller.call('RegisterWallet', { name: 'w', ...confirmation, ...fields }))
        .wallet_id
    }
    const balanceOf = async (caller: Caller, address: string, token_address: string) => {
      const { assets } = await caller.call('ListAssets', { address, asset_type, token_address })
      return assets[0]?.balance as string | undefined
    }
    const noJobs = async (network_id: number) => {
      await waitFor('the jobs are done', async () => {
        const { rows } = await pool.query('select 1 from job where network_id = $1', [network_id])
        return rows.length === 0
      })
    }

    it('counts the deposits of present and later addresses of the wallet, and of no other', async () => {
      const started = await startTokens()
      const { bench, caller, start, token, other } = started
      const { chain, account, address } = bench
      const paid = (number: number, value: bigint, { asset } = token) =>
        chain.mine([{ movements: [{ to: account(number), value, asset }] }])
      const wallet_id = await register(caller, { address: address(1) })
      await register(caller, { address: address(9) })
      start()
      paid(1, 5n)
      await settled(bench)
      for (let times = 0; times < 2; times++)
        await caller.call('ImportAsset', {
          wallet_id,
          asset_type,
          token_address: token.token_address,
        })
      // What it had before is read; what moved before is not in the history.
      expect(await balanceOf(caller, address(1), token.token_address)).toBe('5')
      await caller.call('RegisterAddress', { wallet_id, address: address(2) })
      await caller.call('BatchRegisterAddresses', {
        wallet_id,
        addresses: [address(3), address(4)],
      })
      for (const number of [1, 2, 3, 4, 9]) paid(number, 10n)
      paid(2, 3n)
      paid(2, 7n, other)
      await settled(bench)
      const balances = await Promise.all(
        [1, 2, 3, 4, 9].map((number) => balanceOf(caller, address(number), token.token_address)),
      )
      expect(balances).toEqual(['15', '13', '10', '10', undefined])
      const seen = await listAll(caller, { wallet_id })
      expect(seen.map(({ value, to }) => [to, value]).toSorted()).toEqual(
        [
          [address(1), '10'],
          [address(2), '10'],
          [address(2), '3'],
          [address(3), '10'],
          [address(4), '10'],
        ].toSorted(),
      )
      for (const record of seen)
        expect(record).toMatchObject({ asset_type, token_address: token.token_address })
      await caller.call('RefreshAssetBalances', { wallet_id, asset_type })
      expect(await balanceOf(caller, address(2), token.token_address)).toBe('13')
      const listed = await caller.call('ListAssets', {
        ...{ wallet_id, asset_type, is_aggregated: true, token_address: token.token_address },
      })
      expect(listed.assets).toMatchObject([{ balance: '48' }])
    })

    it('is that of every wallet of the organization, later ones included, and of no other organization', async () => {
      const started = await startTokens()
      const { bench, caller, start, token } = started
      const { chain, account, address } = bench
      const stranger = await bench.createCaller()
      await register(stranger, { address: address(1) })
      await register(caller, { address: address(1) })
      await caller.call('ImportAsset', { asset_type, token_address: token.token_address })
      await register(caller, { address: address(2) })
      start()
      await settled(bench)
      const movements = [1, 2].map((number) => ({
        ...{ to: account(number), value: 4n, asset: token.asset },
      }))
      chain.mine([{ movements }])
      await settled(bench)
      for (const number of [1, 2]) {
        expect(await balanceOf(caller, address(number), token.token_address)).toBe('4')
        expect(await listAll(caller, { address: address(number) })).toHaveLength(1)
      }
      expect(await balanceOf(stranger, address(1), token.token_address)).toBeUndefined()
      expect(await listAll(stranger, { address: address(1) })).toEqual([])
    })

    it('is read at all addresses page by page, also while no node answers at first', async () => {
      const started = await startTokens()
      const { bench, caller, token } = started
      const { chain, account, address } = bench
      const numbers = Array.from({ length: 250 }, (_, i) => 100 + i)
      const movements = numbers.map((number) => ({
        ...{ to: account(number), value: BigInt(number), asset: token.asset },
      }))
      chain.mine([{ movements }])
      const wallet_id = await register(caller)
      const small = await register(caller, { address: address(1) })
      await caller.call('BatchRegisterAddresses', { wallet_id, addresses: numbers.map(address) })
      const { readBalances } = chain
      let failures = 1
      chain.readBalances = async (...question) => {
        if (failures-- > 0) throw new Error('not now')
        return await readBalances(...question)
      }
      await caller.call('ImportAsset', { asset_type, token_address: token.token_address })
      startImports(started)
      await noJobs(bench.network_id)
      const { rows } = await pool.query(
        'select count(*)::int as count, sum(balance)::text as sum from balance where wallet_id = $1',
        [wallet_id],
      )
      expect(rows[0]).toEqual({
        count: 250,
        sum: numbers.reduce((sum, number) => sum + number, 0).toString(),
      })
      expect(await balanceOf(caller, address(1), token.token_address)).toBe('0')
      expect(small).toBeDefined()
    })

    it('is refused where it cannot be, and says why', async () => {
      const { caller, bench, token } = await startTokens()
      const { address } = bench
      const [one, two] = [
        await register(caller, { address: address(1) }),
        await register(caller, { address: address(2) }),
      ]
      const { token_address } = token
      const fieldOf = async (request: object): Promise<string> =>
        caller.call('ImportAsset', { asset_type, ...request }).then(
          () => 'OK',
          (error: OperationError) => `${error.errors[0]?.field} ${error.errors[0]?.reason}`,
        )
      const unknown = service === 's' ? '0x7::none::NONE' : `0:${'7'.repeat(64)}`
      expect(await fieldOf({ token_address: unknown })).toBe('token_address INVALID_TOKEN')
      expect(await fieldOf({ wallet_id: one, token_address: 'x' })).toBe(
        'token_address INVALID_TOKEN',
      )
      expect(await fieldOf({ wallet_id: one })).toMatch(/AT_LEAST_ONE_REQUIRED/)
      const reason = (request: object) =>
        caller.reason('ImportAsset', { asset_type, token_address, ...request })
      expect(await reason({ wallet_id: 'nonsense' })).toBe('WALLET_NOT_FOUND')
      expect(await reason({ wallet_id: two, address: address(1) })).toBe('ADDRESS_NOT_FOUND')
      expect(await reason({ wallet_id: one, address: address(1) })).toBe('OK')
      const stranger = await bench.createCaller()
      expect(
        await stranger.reason('ImportAsset', { asset_type, token_address, wallet_id: one }),
      ).toBe('WALLET_NOT_FOUND')
      await caller.call('RemoveWallet', { wallet_id: two })
      expect(await reason({ wallet_id: two })).toBe('WALLET_NOT_FOUND')
    })

    it('is bounded in number, which those that are there do not count for again', async () => {
      const { caller, bench, token, other } = await startTokens()
      const wallet_id = await register(caller)
      await caller.call('ImportAsset', { asset_type, token_address: token.token_address })
      await pool.query(
        `insert into token_rule select gen_random_uuid(), r.organization_id, r.network_id, null,
         r.asset_id, now() from token_rule r, generate_series(1, 199) where network_id = $1`,
        [bench.network_id],
      )
      const request = { asset_type, token_address: token.token_address }
      expect(await caller.reason('ImportAsset', request)).toBe('OK')
      expect(await caller.reason('ImportAsset', { ...request, wallet_id })).toBe('INVALID_REQUEST')
      const third = { asset_type, token_address: other.token_address }
      expect(await caller.reason('ImportAsset', third)).toBe('INVALID_REQUEST')
    })

    it('is no longer tracked once its rule is removed, except where it is tracked otherwise', async () => {
      const started = await startTokens()
      const { bench, caller, start, token, other } = started
      const { chain, account, address } = bench
      const one = await register(caller, { address: address(1) })
      const two = await register(caller, { address: address(2) })
      await caller.call('RegisterAddress', { wallet_id: two, address: address(3) })
      const { token_address } = token
      const asset = { asset_type, token_address }
      await caller.call('ImportAsset', asset)
      await caller.call('ImportAsset', { ...asset, wallet_id: one })
      await caller.call('ImportAsset', { ...asset, address: address(3) })
      await caller.call('ImportAsset', { asset_type, token_address: other.token_address })
      start()
      await settled(bench)
      const pay = async () => {
        const movements = [1, 2, 3].flatMap((number) =>
          [token, other].map((some) => ({
            ...{ to: account(number), value: 4n, asset: some.asset },
          })),
        )
        chain.mine([{ movements }])
        await settled(bench)
      }
      const counts = async () =>
        await Promise.all(
          [1, 2, 3].map(async (number) => [
            (await listAll(caller, { address: address(number) })).length,
            await balanceOf(caller, address(number), token_address),
            await balanceOf(caller, address(number), other.token_address),
          ]),
        )
      await pay()
      const stranger = await bench.createCaller()
      await stranger.call('RemoveAsset', asset)
      await stranger.call('RemoveAsset', { ...asset, wallet_id: one })
      expect(await counts()).toEqual([
        [2, '4', '4'],
        [2, '4', '4'],
        [2, '4', '4'],
      ])
      for (let times = 0; times < 2; times++) await caller.call('RemoveAsset', asset)
      await pay()
      expect(await counts()).toEqual([
        [4, '8', '8'],
        [3, undefined, '8'],
        [4, '8', '8'],
      ])
      await caller.call('RemoveAsset', { ...asset, wallet_id: one })
      await pay()
      expect((await counts())[0]).toEqual([5, undefined, '12'])
      await caller.call('RegisterAddress', { wallet_id: one, address: address(4) })
      await caller.call('RefreshAssetBalances', { wallet_id: one, asset_type })
      expect(await balanceOf(caller, address(1), token_address)).toBeUndefined()
      expect(await balanceOf(caller, address(4), token_address)).toBeUndefined()
      // It can be tracked again.
      await caller.call('ImportAsset', asset)
      expect(await balanceOf(caller, address(1), token_address)).toBe('12')
    })

    it('goes with its address, and with its wallet', async () => {
      const started = await startTokens()
      const { bench, caller, start, token } = started
      const { chain, account, address } = bench
      const wallet_id = await register(caller, { address: address(1) })
      await caller.call('ImportAsset', {
        ...{ wallet_id, asset_type, token_address: token.token_address },
      })
      start()
      await settled(bench)
      const pay = () =>
        chain.mine([{ movements: [{ to: account(1), value: 4n, asset: token.asset }] }])
      await caller.call('RemoveAddress', { wallet_id, address: address(1) })
      pay()
      await settled(bench)
      await caller.call('RegisterAddress', { wallet_id, address: address(1) })
      pay()
      await settled(bench)
      expect(await balanceOf(caller, address(1), token.token_address)).toBe('8')
      expect(await listAll(caller, { address: address(1) })).toHaveLength(1)
      await caller.call('RemoveWallet', { wallet_id })
      const left = await pool.query(
        `select (select count(*) from token_rule where network_id = $1)::int as rules,
         (select count(*) from token_import where network_id = $1)::int as imports`,
        [bench.network_id],
      )
      expect(left.rows[0]).toEqual({ rules: 0, imports: 0 })
    })
  },
)
