// The table of all operations and their handlers, typed by the catalogue: a missing or extra operation does
// not compile. Handlers use storage and chains; they know nothing of HTTP.

import type { WalletAnswer, WalletOperation } from '../contract/operations/calls.ts'
import type { Catalogue } from '../contract/operations/catalogue.ts'
import type { Service, WalletService } from '../contract/variant.ts'
import {
  CreateCredential,
  DeleteCredential,
  ListCredentials,
  RevokeCredential,
  RotateCredential,
  UpdateCredential,
} from './admin/credentials.ts'
import {
  DeleteOrganization,
  DisableOrganization,
  EnableOrganization,
  GetOrganizationDeletion,
  RenameOrganization,
} from './admin/life-cycle.ts'
import {
  CreateOrganization,
  GetOrganizationByDomain,
  ListOrganizations,
} from './admin/organizations.ts'
import { SetQuota } from './admin/quotas.ts'
import {
  DeleteRateLimit,
  GetRateLimit,
  ListEffectiveRateLimits,
  ListRateLimits,
  SetRateLimit,
} from './admin/rate-limits.ts'
import { GetUsage } from './admin/usage.ts'
import { ListAuditEvents } from './audit/list.ts'
import type { Handler } from './context.ts'
import { GetBlock } from './query/blocks.ts'
import { ListInternalTransactions } from './query/internal-transactions.ts'
import { GetPendingTransaction, ListPendingTransactions } from './query/pending-transactions.ts'
import {
  GetTransaction,
  GetTransactionReceipt,
  ListLogs,
  ListTransactions,
} from './query/transactions.ts'
import { CancelTransaction } from './transactions/cancel.ts'
import { CreateTransaction } from './transactions/create.ts'
import { CreateTokenTransaction } from './transactions/create-token.ts'
import * as managed from './transactions/read.ts'
import { SendTransaction } from './transactions/send.ts'
import { SubmitTransactionSignature } from './transactions/sign.ts'
import {
  BatchRegisterAddresses,
  BatchRemoveAddresses,
  ListAddresses,
  RegisterAddress,
  RemoveAddress,
} from './wallets/addresses.ts'
import { ListAssets } from './wallets/assets.ts'
import { ListContracts, RegisterContract, RemoveContract } from './wallets/contracts.ts'
import { ImportAsset } from './wallets/import-asset.ts'
import { RefreshAssetBalances } from './wallets/refresh.ts'
import { RemoveWallet } from './wallets/remove-wallet.ts'
import { ListTransfers } from './wallets/transfers.ts'
import {
  GetAddress,
  GetWallet,
  ListWallets,
  RegisterWallet,
  RenameWallet,
  UpdateConfirmation,
} from './wallets/wallets.ts'

import {
  ListWebhookHeaders,
  RegisterWebhookHeader,
  RemoveWebhookHeader,
} from './webhooks/headers.ts'
import {
  ListWebhookAttempts,
  ListWebhookHistories,
  RetryWebhookHistory,
} from './webhooks/histories.ts'
import { GetWebhookSigningSecret, RotateWebhookSigningSecret } from './webhooks/signing-secret.ts'
import {
  DisableWebhook,
  EnableWebhook,
  ListWebhooks,
  RegisterWebhook,
  RemoveWebhook,
  SendTestWebhook,
  UpdateWebhook,
} from './webhooks/webhooks.ts'

/** The answer that a handler gives: of the one service, or of all wallet services that share it. */
type AnswerOf<
  service extends Service,
  name extends keyof Catalogue<service>,
> = service extends WalletService
  ? name extends WalletOperation
    ? WalletAnswer<name>
    : never
  : Catalogue<service>[name] extends { response: infer answer }
    ? answer
    : never

/** One handler for each operation of a service. */
export type HandlersOf<service extends Service> = {
  readonly [name in keyof Catalogue<service>]: Handler<
    Catalogue<service>[name] extends { request: infer request } ? request : never,
    AnswerOf<service, name>
  >
}

/** The same without any further operation, which a spread would let through. */
type Exactly<table, service extends Service> = table & {
  readonly [name in Exclude<keyof table, keyof Catalogue<service>>]: never
}

/** Checks that a table has every operation of a service, and no other. */
export const handlersOf =
  <service extends Service>() =>
  <table extends HandlersOf<service>>(table: Exactly<table, service>): HandlersOf<service> =>
    table

const admin = {
  CreateCredential,
  CreateOrganization,
  DeleteCredential,
  DeleteOrganization,
  DeleteRateLimit,
  DisableOrganization,
  EnableOrganization,
  GetOrganizationByDomain,
  GetOrganizationDeletion,
  GetRateLimit,
  GetUsage,
  ListAuditEvents,
  ListCredentials,
  ListEffectiveRateLimits,
  ListOrganizations,
  ListRateLimits,
  RevokeCredential,
  RotateCredential,
  SetQuota,
  RenameOrganization,
  SetRateLimit,
  UpdateCredential,
}

const query = {
  GetBlock,
  GetPendingTransaction,
  GetTransaction,
  GetTransactionReceipt,
  ListInternalTransactions,
  ListLogs,
  ListPendingTransactions,
  ListTransactions,
}

/** The same in every variant; what differs is in the chain and in the declared fields. */
const wallets = {
  BatchRegisterAddresses,
  BatchRemoveAddresses,
  GetWallet,
  ListAddresses,
  ListAssets,
  ListTransfers,
  ListWallets,
  RefreshAssetBalances,
  RegisterAddress,
  RegisterWallet,
  RemoveAddress,
  RemoveWallet,
  RenameWallet,
  DisableWebhook,
  EnableWebhook,
  GetWebhookSigningSecret,
  ListWebhookAttempts,
  ListWebhookHeaders,
  ListWebhookHistories,
  ListWebhooks,
  RegisterWebhook,
  RegisterWebhookHeader,
  RemoveWebhook,
  RemoveWebhookHeader,
  RetryWebhookHistory,
  RotateWebhookSigningSecret,
  SendTestWebhook,
  UpdateWebhook,
}

const transactions = {
  CancelTransaction,
  CreateTokenTransaction,
  CreateTransaction,
  ...managed,
  SendTransaction,
  SubmitTransactionSignature,
}

const contracts = { ListContracts, RegisterContract, RemoveContract }

/** What each operation does, by service and name. */
export const handlers: { readonly [service in Service]: HandlersOf<service> } = {
  admin: handlersOf<'admin'>()(admin),
  q: handlersOf<'q'>()(query),
  t: handlersOf<'t'>()({ ...wallets, GetAddress, ImportAsset }),
  s: handlersOf<'s'>()({ ...wallets, GetAddress, ImportAsset, UpdateConfirmation }),
  p: handlersOf<'p'>()({ ...wallets, ImportAsset }),
  c: handlersOf<'c'>()({ ...wallets, ...contracts, ...transactions, UpdateConfirmation }),
}

/** The handler of an operation; undefined where the service does not offer it. */
export const findHandler = (service: Service, name: string): Handler | undefined => {
  const table: Readonly<Record<string, Handler>> = handlers[service]
  return Object.hasOwn(table, name) ? table[name] : undefined
}
