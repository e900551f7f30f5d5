import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/helpers/database.ts'
import { type Caller, createWalletBench } from '../../../test/helpers/wallets.ts'
import type { OperationError } from '../../contract/errors/errors.ts'
import type { WalletService } from '../../contract/variant.ts'

const { db } = await freshDatabase()
const failure = (answer: Promise<unknown>): Promise<OperationError> =>
  answer.then(
    () => Promise.reject(new Error('was not refused')),
    (error: OperationError) => error,
  )

type Listed = { address: string }

async function collect(caller: Caller, operation: string, request: object): Promise<Listed[]> {
  const all: Listed[] = []
  let page_token = ''
  do {
    const page = await caller.call(operation, { ...request, ...(page_token && { page_token }) })
    all.push(...page.addresses)
    page_token = page.pagination.next_page_token
  } while (page_token)
  return all
}

describe.each<WalletService>(['t', 's', 'p', 'c'])('wallets of %s', async (service) => {
  const bench = await createWalletBench(db, service)
  const { address } = bench
  const caller = await bench.createCaller()
  const { call, reason } = caller
  let next = 1
  const fresh = () => address(next++)
  const register = async (fields: object = {}) =>
    (await call('RegisterWallet', { name: 'wallet', ...fields })).wallet_id as string

  it('are created, read by id and by address, and show the canonical address', async () => {
    const evm = `0x${'ab'.repeat(20)}`
    const wallet_id = await register({ name: 'Kasse', address: evm })
    const { wallet } = await call('GetWallet', { wallet_id })
    const parsed = bench.family.parseAddress(evm)
    const canonical = parsed.ok ? bench.family.formatAddress(parsed.bytes) : ''
    expect(wallet).toMatchObject({ wallet_id, name: 'Kasse', addresses: [canonical] })
    expect(wallet.confirmation).toBe(service === 's' || service === 'c' ? 10 : undefined)
    expect(wallet.address_mapping?.length).toBe(service === 't' ? 1 : undefined)
    expect((await call('GetWallet', { address: evm })).wallet).toEqual(wallet)
    expect((await call('GetWallet', { address: canonical, wallet_id })).wallet).toEqual(wallet)
    const other = await register()
    expect(await reason('GetWallet', { address: evm, wallet_id: other })).toBe('WALLET_NOT_FOUND')
    expect(await reason('GetWallet', { address: fresh() })).toBe('WALLET_NOT_FOUND')
    for (const wallet_id of [randomUUID(), 'nonsense', ''])
      if (wallet_id) expect(await reason('GetWallet', { wallet_id })).toBe('WALLET_NOT_FOUND')
  })

  it('with an address that is taken are not created at all', async () => {
    const taken = fresh()
    await register({ address: taken })
    const before = (await call('ListWallets', { page_size: 100 })).wallets.length
    expect(await reason('RegisterWallet', { name: 'x', address: taken })).toBe(
      'ADDRESS_IN_OTHER_WALLET',
    )
    expect((await call('ListWallets', { page_size: 100 })).wallets.length).toBe(before)
  })

  it('take an address again without a change, and refuse that of another wallet', async () => {
    const [one, two] = [await register(), await register()]
    const taken = fresh()
    await call('RegisterAddress', { wallet_id: one, address: taken })
    const { wallet } = await call('GetWallet', { wallet_id: one })
    await call('RegisterAddress', { wallet_id: one, address: taken })
    expect((await call('GetWallet', { wallet_id: one })).wallet).toEqual(wallet)
    expect(await reason('RegisterAddress', { wallet_id: two, address: taken })).toBe(
      'ADDRESS_IN_OTHER_WALLET',
    )
    // Another organization may track it too.
    const other = await bench.createCaller()
    const { wallet_id } = await other.call('RegisterWallet', { name: 'theirs', address: taken })
    expect((await other.call('GetWallet', { address: taken })).wallet.wallet_id).toBe(wallet_id)
    expect(await other.reason('GetWallet', { wallet_id: one })).toBe('WALLET_NOT_FOUND')
  })

  it('take batches all or nothing and name every bad address', async () => {
    const [one, two] = [await register(), await register()]
    const many = Array.from({ length: 5 }, fresh)
    await call('BatchRegisterAddresses', { wallet_id: one, addresses: [...many, many[0]] })
    expect((await call('GetWallet', { wallet_id: one })).wallet.addresses.toSorted()).toEqual(
      many.toSorted(),
    )
    const mixed = [fresh(), many[1], fresh(), many[3], many[1]]
    const error = await failure(
      call('BatchRegisterAddresses', { wallet_id: two, addresses: mixed }),
    )
    expect(error.reason).toBe('ADDRESS_IN_OTHER_WALLET')
    expect(error.errors.map(({ field }) => field)).toEqual([
      'addresses[1]',
      'addresses[3]',
      'addresses[4]',
    ])
    expect((await call('GetWallet', { wallet_id: two })).wallet.addresses).toEqual([])
  })

  it('are removed from in batches, and a missing address is not an error', async () => {
    const wallet_id = await register()
    const many = Array.from({ length: 5 }, fresh)
    await call('BatchRegisterAddresses', { wallet_id, addresses: many })
    const left = async () => (await call('GetWallet', { wallet_id })).wallet.addresses.length
    await call('BatchRemoveAddresses', { wallet_id, addresses: [many[0], fresh(), many[0]] })
    expect(await left()).toBe(4)
    const again = { wallet_id, addresses: [many[0], many[1]] }
    expect(await call('BatchRemoveAddresses', again)).toEqual({})
    expect(await call('BatchRemoveAddresses', again)).toEqual({})
    expect(await left()).toBe(3)
    for (let times = 0; times < 2; times++)
      expect(await call('RemoveAddress', { wallet_id, address: many[2] })).toEqual({})
    expect(await left()).toBe(2)
    // Of another wallet, and of no wallet.
    const other = await register()
    await call('RemoveAddress', { wallet_id: other, address: many[3] })
    for (const unknown of [randomUUID(), 'x']) {
      await call('RemoveAddress', { wallet_id: unknown, address: many[3] })
      await call('BatchRemoveAddresses', { wallet_id: unknown, remove_all: true })
    }
    expect(await left()).toBe(2)
    expect(await reason('RemoveAddress', { wallet_id, address: 'x' })).toBe('INVALID_REQUEST')
    expect(await reason('BatchRemoveAddresses', { wallet_id, remove_all: false })).toBe(
      'INVALID_REQUEST',
    )
    await call('BatchRemoveAddresses', { wallet_id, addresses: [fresh()], remove_all: false })
    expect(await left()).toBe(2)
    // The specification excludes neither: `remove_all` removes every address.
    const both = { wallet_id, addresses: [many[3]], remove_all: true }
    expect(await call('BatchRemoveAddresses', both)).toEqual({})
    expect(await left()).toBe(0)
    await call('BatchRegisterAddresses', { wallet_id, addresses: many.slice(3) })
    expect(await left()).toBe(2)
    await call('BatchRemoveAddresses', { wallet_id, remove_all: true })
    await call('BatchRemoveAddresses', { wallet_id, remove_all: true })
    expect((await call('GetWallet', { wallet_id })).wallet.addresses).toEqual([])
    // Free for another wallet now.
    await register({ address: many[0] })
  })

  it('of twenty at once, one gets an address', async () => {
    const wanted = fresh()
    const reasons = await Promise.all(
      Array.from({ length: 20 }, () => reason('RegisterWallet', { name: 'x', address: wanted })),
    )
    expect(reasons.filter((one) => one === 'OK')).toHaveLength(1)
    expect(new Set(reasons)).toEqual(new Set(['OK', 'ADDRESS_IN_OTHER_WALLET']))
  })

  it('wait but never for each other when batches overlap', async () => {
    const wallet_id = await register()
    const many = Array.from({ length: 50 }, fresh)
    await Promise.all(
      Array.from({ length: 8 }, (_, at) =>
        call('BatchRegisterAddresses', {
          wallet_id,
          addresses: at % 2 ? many : many.toReversed(),
        }),
      ),
    )
    expect((await call('GetWallet', { wallet_id })).wallet.addresses).toHaveLength(50)
  })

  it('are listed in the order of their creation, without gap or double', async () => {
    const other = await bench.createCaller()
    const made: string[] = []
    for (let i = 0; i < 7; i++)
      made.push((await other.call('RegisterWallet', { name: `w${i}` })).wallet_id)
    const seen: string[] = []
    let page_token = ''
    do {
      const page = await other.call('ListWallets', {
        page_size: 3,
        ...(page_token && { page_token }),
      })
      seen.push(...page.wallets.map((wallet: { wallet_id: string }) => wallet.wallet_id))
      page_token = page.pagination.next_page_token
    } while (page_token)
    expect(seen).toEqual(made)
  })

  it('of many addresses are read in bounded answers, and paged without gap or double', async () => {
    const other = await bench.createCaller()
    const { wallet_id } = await other.call('RegisterWallet', { name: 'many' })
    const all = Array.from({ length: 1_203 }, fresh)
    for (let at = 0; at < all.length; at += 1_000)
      await other.call('BatchRegisterAddresses', {
        wallet_id,
        addresses: all.slice(at, at + 1_000),
      })
    const small = await other.call('RegisterWallet', { name: 'small', address: fresh() })
    const read = async () => (await other.call('GetWallet', { wallet_id })).wallet

    const wallet = await read()
    expect(wallet).toMatchObject({ address_count: 1_203, addresses_truncated: true })
    expect(wallet.addresses).toHaveLength(1_000)
    expect(wallet.address_mapping?.length).toBe(service === 't' ? 1_000 : undefined)

    const listed = await collect(other, 'ListAddresses', { wallet_id, page_size: 100 })
    expect(listed.map(({ address }) => address).toSorted()).toEqual(all.toSorted())
    expect(listed.map(({ address }) => address).slice(0, 1_000)).toEqual(wallet.addresses)
    expect(listed.every((one) => 'user_friendly_address' in one)).toBe(service === 't')
    const { addresses } = await other.call('ListAddresses', { wallet_id })
    expect(addresses).toHaveLength(10)

    // The more wallets a page has, the fewer addresses of each it holds.
    const page = await other.call('ListWallets', { page_size: 100 })
    expect(page.wallets).toMatchObject([
      { wallet_id, address_count: 1_203, addresses_truncated: true },
      { wallet_id: small.wallet_id, address_count: 1, addresses_truncated: false },
    ])
    expect(page.wallets[0].addresses).toHaveLength(100)
    expect(page.wallets[1].addresses).toHaveLength(1)

    await other.call('BatchRegisterAddresses', { wallet_id, addresses: all.slice(0, 10) })
    expect((await read()).address_count).toBe(1_203)
    await other.call('BatchRemoveAddresses', { wallet_id, addresses: all.slice(0, 203) })
    expect(await read()).toMatchObject({ address_count: 1_000, addresses_truncated: false })
    await other.call('RemoveAddress', { wallet_id, address: all[203] })
    expect((await read()).address_count).toBe(999)
    await other.call('BatchRemoveAddresses', { wallet_id, remove_all: true })
    expect(await read()).toMatchObject({ address_count: 0, addresses: [] })
    expect((await other.call('ListAddresses', { wallet_id })).addresses).toEqual([])
    expect(await caller.reason('ListAddresses', { wallet_id })).toBe('WALLET_NOT_FOUND')
  })

  it('of a few addresses show them in the order of their registration', async () => {
    const wallet_id = await register()
    const late = address(200_000 + next)
    for (const one of [late, fresh(), fresh()]) {
      await call('RegisterAddress', { wallet_id, address: one })
      await setTimeout(2)
    }
    const { wallet } = await call('GetWallet', { wallet_id })
    expect(wallet.addresses[0]).toBe(late)
  })

  it('refuse an address that the chain does not have', async () => {
    const wallet_id = await register()
    const bad = {
      t: 'EQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqB2M',
      s: '0x',
      p: '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQZ',
      c: `0x${'AB'.repeat(20)}`,
    }[service]
    const error = await failure(
      call('BatchRegisterAddresses', { wallet_id, addresses: [fresh(), bad] }),
    )
    expect(error.reason).toBe('INVALID_REQUEST')
    expect(error.errors.map(({ field }) => field)).toEqual(['addresses[1]'])
  })

  it.runIf(service === 't' || service === 's')('are found by GetAddress', async () => {
    const wanted = fresh()
    const wallet_id = await register({ address: wanted })
    const found = await call('GetAddress', { address: wanted })
    expect(found).toMatchObject({ address: wanted, wallet_id })
    expect('user_friendly_address' in found).toBe(service === 't')
    expect(await reason('GetAddress', { address: fresh() })).toBe('ADDRESS_NOT_FOUND')
  })

  it.runIf(service === 'c' || service === 's')('change their confirmation', async () => {
    const wallet_id = await register({ confirmation: 3 })
    expect((await call('GetWallet', { wallet_id })).wallet.confirmation).toBe(3)
    await call('UpdateConfirmation', { wallet_id, confirmation: 0 })
    expect((await call('GetWallet', { wallet_id })).wallet.confirmation).toBe(0)
    const unknown = { wallet_id: randomUUID(), confirmation: 1 }
    expect(await reason('UpdateConfirmation', unknown)).toBe('WALLET_NOT_FOUND')
  })

  describe('while the chain is not configured', async () => {
    const without = await bench.createCaller({ configured: false })
    const wallet_id = randomUUID()
    it.each([
      ['RegisterWallet', { name: 'x' }],
      ['RegisterAddress', { wallet_id, address: address(9_999) }],
      ['BatchRegisterAddresses', { wallet_id, addresses: [address(9_999)] }],
      ['RefreshAssetBalances', { wallet_id, asset_type: bench.family.native.asset_type }],
    ])('refuse %s', async (operation, request) => {
      expect(await without.reason(operation, request)).toBe('CHAIN_NOT_CONFIGURED')
    })
    it('still list what is stored', async () => {
      expect(await without.call('ListWallets')).toMatchObject({ wallets: [] })
      expect(await without.reason('GetWallet', { wallet_id })).toBe('WALLET_NOT_FOUND')
    })
  })
})
