import {
  Address,
  Addresses,
  AssetAddress,
  AssetType,
  Confirmation10,
  Decimal,
  EvmAddress,
  extension,
  flag,
  Id,
  ImportFlag,
  Name,
  OptionalAddress,
  OptionalAddresses,
  optional,
  Pagination,
  page,
  TokenAddress,
  TransactionId,
  text,
  timeRange,
} from '../fields.ts'
import { maxBatchAddresses, maxTokenRules } from '../limits.ts'
import { operation } from '../operation.ts'
import {
  AddressRecord,
  Asset,
  BalancePoint,
  Transfer,
  Wallet,
  WalletAddress,
} from '../records/wallet.ts'
import { each, list, only } from '../variant.ts'

// The specification has no token filter for P, although Asset Hub has tokens.
/** The token of a request; in P an extension. */
const tokenFilter = each({
  T: optional(TokenAddress),
  S: optional(TokenAddress),
  P: optional(extension(TokenAddress)),
})

/** The wallet operations (spec 4.3). One row each; the differences of the variants are in the fields. */
export const wallet = {
  BatchRegisterAddresses: operation({
    creates: true,
    summary: `Track up to ${maxBatchAddresses} addresses in a wallet.`,
    description: 'All or nothing; an address that the wallet has already changes nothing.',
    services: 'TSPC',
    request: { wallet_id: Id, addresses: Addresses },
    response: {},
  }),
  BatchRemoveAddresses: operation({
    summary: 'Stop tracking addresses of a wallet, or all of them.',
    description: 'Addresses that the wallet does not have, or no longer, are no error.',
    services: 'TSPC',
    request: {
      wallet_id: Id,
      addresses: OptionalAddresses,
      remove_all: flag('remove every address of the wallet'),
    },
    anyOf: ['addresses', 'remove_all'],
    response: {},
  }),
  RegisterAddress: operation({
    creates: true,
    summary: 'Track an address in a wallet.',
    services: 'TSPC',
    request: { wallet_id: Id, address: Address, import_asset: ImportFlag },
    response: {},
  }),
  RemoveAddress: operation({
    summary: 'Stop tracking an address; its history stays.',
    description: 'One that the wallet does not have, or no longer, is no error.',
    services: 'TSPC',
    request: { wallet_id: Id, address: Address },
    response: {},
  }),
  ListAddresses: operation({
    summary: 'List the addresses of a wallet, any number of them.',
    description:
      'In the order of their bytes. An address that is registered meanwhile is listed only where its place is still to come.',
    services: 'TSPC',
    extension: true,
    request: { wallet_id: Id, ...page },
    response: { addresses: list(WalletAddress), pagination: Pagination },
  }),
  // P and C have no such operation in the specification: GetWallet with `address` finds the wallet there.
  GetAddress: operation({
    summary: 'Find the wallet that tracks an address.',
    services: 'TS',
    request: { address: Address },
    response: AddressRecord.fields,
  }),
  GetWallet: operation({
    summary: 'Read a wallet, by its id or by one of its addresses.',
    services: 'TSPC',
    request: { wallet_id: optional(Id), address: OptionalAddress },
    anyOf: ['wallet_id', 'address'],
    response: { wallet: Wallet },
  }),
  ListWallets: operation({
    summary: 'List the wallets of the organization, oldest first.',
    services: 'TSPC',
    request: page,
    response: { wallets: list(Wallet), pagination: Pagination },
  }),
  RegisterWallet: operation({
    creates: true,
    summary: 'Create a wallet, with its first address if you like.',
    services: 'TSPC',
    request: {
      name: Name,
      address: OptionalAddress,
      import_asset: ImportFlag,
      confirmation: only('SC', optional(Confirmation10)),
    },
    response: { wallet_id: text },
  }),
  RenameWallet: operation({
    summary: 'Give a wallet another name.',
    services: 'TSPC',
    extension: true,
    request: { wallet_id: Id, name: Name },
    response: {},
  }),
  // Transfers keep the id of their wallet, so that the accounts of a year remain complete after it is removed.
  RemoveWallet: operation({
    summary: 'Remove a wallet with its addresses and webhooks; its history stays.',
    description:
      'Transfers and transactions can still be listed by its id. One that is not there, or no longer, is no error.',
    services: 'TSPC',
    extension: true,
    request: { wallet_id: Id },
    response: {},
  }),
  UpdateConfirmation: operation({
    summary: 'Change how many confirmations the balances of a wallet wait for.',
    services: 'SC',
    request: { wallet_id: Id, confirmation: Confirmation10 },
    response: {},
  }),
  ImportAsset: operation({
    summary: 'Read the current balance of an asset and keep it up to date.',
    description: `In T, S and P, a token without \`address\` is tracked for all addresses of the wallet \`wallet_id\`, or without that of the organization, those that are registered later included. Up to ${maxTokenRules} tokens can be tracked so. Repeating it changes nothing.`,
    services: 'TSP',
    request: {
      wallet_id: only('TSP', optional(extension(Id))),
      address: each({ T: AssetAddress.each.T, S: AssetAddress.each.S, P: AssetAddress.each.P }),
      asset_type: AssetType,
      token_address: tokenFilter,
      token_account_address: only('TS', optional(TokenAddress)),
    },
    anyOf: {
      T: ['address', 'token_address', 'token_account_address'],
      S: ['address', 'token_address', 'token_account_address'],
      P: ['address', 'token_address'],
    },
    response: {},
  }),
  RemoveAsset: operation({
    summary: 'Stop tracking a token for all addresses of a wallet or of the organization.',
    description:
      'Undoes an ImportAsset without `address`. Balances of the token go, transfers stay. Addresses for which the token was imported by name, or by a rule that remains, keep it. One that is not there, or no longer, is no error.',
    services: 'TS',
    extension: true,
    request: {
      wallet_id: optional(Id),
      asset_type: AssetType,
      token_address: TokenAddress,
    },
    response: {},
  }),
  ListAssets: operation({
    summary: 'List balances by wallet, address and asset.',
    services: 'TSPC',
    request: {
      wallet_id: optional(Id),
      address: OptionalAddress,
      asset_type: AssetType,
      is_aggregated: flag('sum over all addresses, one record per asset'),
      exclude_zero_balance: flag('leave out balances of zero'),
      token_address: tokenFilter,
      contract_address: only('C', optional(EvmAddress)),
      ...page,
    },
    response: { assets: list(Asset), pagination: Pagination },
  }),
  ListBalanceHistory: operation({
    summary: 'List the balance of an asset after each of its transfers, newest first.',
    description:
      'Reckoned back from the current balance by the stored transfers and fees, for one address or the sum over all addresses of the wallet. Transfers that the balance does not include yet are left out. Balances that change without a transfer, such as those of tokens that rebase, differ by that in older points.',
    services: 'TSPC',
    extension: true,
    request: {
      wallet_id: optional(Id),
      address: OptionalAddress,
      asset_type: AssetType,
      token_address: tokenFilter,
      contract_address: only('C', optional(EvmAddress)),
      token_id: only('C', optional(Decimal)),
      ...page,
    },
    anyOf: ['wallet_id', 'address'],
    response: { points: list(BalancePoint), pagination: Pagination },
  }),
  // It answers before anything is read: the request is stored as a job, so that a slow node cannot hold up the caller.
  RefreshAssetBalances: operation({
    summary: 'Read balances again from the chain.',
    services: 'TSPC',
    request: { wallet_id: optional(Id), address: AssetAddress, asset_type: AssetType },
    anyOf: ['wallet_id', 'address'],
    response: {},
  }),
  // At least one filter is required (spec 4.3): each of them has an index, and the list of all has none.
  ListTransfers: operation({
    summary: 'List transfers, newest first.',
    services: 'TSPC',
    request: {
      wallet_id: optional(Id),
      address: OptionalAddress,
      transaction_hash: only('TPC', optional(TransactionId)),
      transaction_digest: only('S', optional(TransactionId)),
      ...timeRange,
      ...page,
    },
    anyOf: {
      T: ['wallet_id', 'address', 'transaction_hash'],
      S: ['wallet_id', 'address', 'transaction_digest'],
      P: ['wallet_id', 'address', 'transaction_hash'],
      C: ['wallet_id', 'address', 'transaction_hash'],
    },
    response: { transfers: list(Transfer), pagination: Pagination },
  }),
}
