import type { Catalogue } from '../../src/contract/operations/catalogue.ts'
import { createClient, items, type Notification, pages, verifyWebhook } from './index.ts'

const { admin, q, t, s, p, c } = createClient({ base_url: '', api_key: '', api_secret: '' })

type Equal<a, b> =
  (<x>() => x extends a ? 1 : 2) extends <x>() => x extends b ? 1 : 2 ? true : false
const isTrue = <_ extends true>() => {}

// import_asset: T, S, P only.
t.RegisterAddress({ wallet_id: 'w', address: 'a', import_asset: true })
s.RegisterAddress({ wallet_id: 'w', address: 'a', import_asset: true })
p.RegisterWallet({ name: 'n', import_asset: true })
c.RegisterAddress({ wallet_id: 'w', address: 'a' })
// @ts-expect-error C has no import_asset
c.RegisterAddress({ wallet_id: 'w', address: 'a', import_asset: true })
// @ts-expect-error C has no import_asset
c.RegisterWallet({ name: 'n', import_asset: true })
// @ts-expect-error C has no ImportAsset
c.ImportAsset({ address: 'a', asset_type: 'ASSET_TYPE_C' })

// GetAddress: T and S only.
t.GetAddress({ address: 'a' })
s.GetAddress({ address: 'a' })
// @ts-expect-error P has no GetAddress
p.GetAddress({ address: 'a' })
// @ts-expect-error C has no GetAddress
c.GetAddress({ address: 'a' })
;(await t.GetAddress({ address: 'a' })).user_friendly_address satisfies string
// @ts-expect-error an S address has no user-friendly form
;(await s.GetAddress({ address: 'a' })).user_friendly_address

// S transfers are known by their digest.
const digests = await s.ListTransfers({ transaction_digest: 'd' })
digests.transfers[0]!.transaction_digest satisfies string
// @ts-expect-error an S transfer has no transaction_hash
digests.transfers[0]!.transaction_hash
// @ts-expect-error S is asked for a digest
s.ListTransfers({ transaction_hash: 'h' })
// @ts-expect-error T is asked for a hash
t.ListTransfers({ transaction_digest: 'd' })

// UpdateConfirmation and confirmation: S and C only.
s.UpdateConfirmation({ wallet_id: 'w', confirmation: 10 })
c.UpdateConfirmation({ wallet_id: 'w', confirmation: 10 })
// @ts-expect-error T has no UpdateConfirmation
t.UpdateConfirmation({ wallet_id: 'w', confirmation: 10 })
// @ts-expect-error P has no UpdateConfirmation
p.UpdateConfirmation({ wallet_id: 'w', confirmation: 10 })
// @ts-expect-error confirmation is required here
c.UpdateConfirmation({ wallet_id: 'w' })
;(await s.GetWallet({ wallet_id: 'w' })).wallet.confirmation satisfies number
// @ts-expect-error a P wallet has no confirmation
;(await p.GetWallet({ wallet_id: 'w' })).wallet.confirmation
// @ts-expect-error a P wallet is registered without confirmation
p.RegisterWallet({ name: 'n', confirmation: 10 })
;(await t.GetWallet({ wallet_id: 'w' })).wallet.address_mapping[0]!.address satisfies string
// @ts-expect-error only a T wallet has address_mapping
;(await s.GetWallet({ wallet_id: 'w' })).wallet.address_mapping

// Asset types.
c.ListAssets({ asset_type: 'ASSET_TYPE_ERC721' })
// @ts-expect-error S knows its own asset type only
s.ListAssets({ asset_type: 'ASSET_TYPE_P' })
// @ts-expect-error asset_type is required
s.ListAssets({ wallet_id: 'w' })
// @ts-expect-error only C filters by contract
t.ListAssets({ asset_type: 'ASSET_TYPE_T', contract_address: 'a' })

// Managed transactions: C only.
const created = await c.CreateTransaction({ wallet_id: 'w', from: 'a', to: 'b', value: '1' })
created.transaction.transaction_state satisfies `TRANSACTION_STATE_${string}`
// @ts-expect-error P has no CreateTransaction
p.CreateTransaction({ wallet_id: 'w', from: 'a', to: 'b', value: '1' })
// @ts-expect-error amounts are decimal strings
c.CreateTransaction({ wallet_id: 'w', from: 'a', to: 'b', value: 1 })
// @ts-expect-error ERC-1155 cannot be sent
c.CreateTokenTransaction({ contract_type: 'CONTRACT_TYPE_ERC1155' })

// Q and C both have GetTransaction and ListTransactions, of different things.
;(await q.GetTransaction({ transaction_hash: 'h' })).transaction.block_number satisfies number
// @ts-expect-error Q looks up by hash only
q.GetTransaction({ transaction_id: 'i' })
// @ts-expect-error a managed transaction has no block_number
;(await c.GetTransaction({ transaction_id: 'i' })).transaction.block_number
isTrue<
  Equal<
    Equal<
      Catalogue<'q'>['GetTransaction']['response'],
      Catalogue<'c'>['GetTransaction']['response']
    >,
    false
  >
>()
q.ListTransactions({ transaction_hashes: [] })
// @ts-expect-error C lists by wallet or address
c.ListTransactions({ transaction_hashes: [] })

// Administration.
const limit = await admin.GetRateLimit({ organization_id: 'o' })
limit.ratelimit_info.per_second_limit satisfies number
// @ts-expect-error an administration operation is not in c
c.GetRateLimit({ organization_id: 'o' })
// @ts-expect-error a typo is an error, not a request
c.RegisterWalet({ name: 'n' })

// A request may be left out where nothing in it is required.
c.ListContracts()
c.ListWallets()
// @ts-expect-error RegisterWallet needs a name
c.RegisterWallet()
c.ListWallets({}, { signal: new AbortController().signal })

// Pages and items keep their types.
for await (const page of pages(c.ListWallets, { page_size: 100 }))
  page.wallets[0]!.confirmation satisfies number
for await (const transfer of items(s.ListTransfers, { wallet_id: 'w' }))
  transfer.transaction_digest satisfies string
// @ts-expect-error not a page field
pages(c.ListWallets, { size: 100 })
// @ts-expect-error GetWallet has no pages
pages(c.GetWallet, { wallet_id: 'w' })

// Notifications are distinguished by their type.
const notification: Notification = await verifyWebhook({ secret: '', headers: {}, body: '' })
if (notification.notification_type === 'NOTIFICATION_TYPE_S_TRANSACTION_UPDATED') {
  notification.data.transaction_digest satisfies string
  notification.data.transfers[0]!.wallet_id satisfies string
}
if (notification.notification_type === 'NOTIFICATION_TYPE_EVM_TRANSACTION_UPDATED') {
  if ('transaction' in notification.data) notification.data.transaction.gas_price satisfies string
  else notification.data.transfers[0]!.block_number satisfies number
}
