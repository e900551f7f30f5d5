// The table of all operations and their handlers, typed by the catalogue: a missing or extra operation does
// not compile. Handlers use storage and chains; they know nothing of HTTP.

import type { WalletAnswer, WalletOperation } from '../contract/operations/calls.ts'
import type { Catalogue, Entry } from '../contract/operations/catalogue.ts'
import { createCheck } from '../contract/validate.ts'
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
import { GetUsage, ListMethodUsage } from './admin/usage.ts'
import { ListAuditEvents } from './audit/list.ts'
import type { Context, Handler } from './context.ts'
import { CreateStreamToken } from './events/token.ts'
import { ListChains, ListProblems } from './overview/chains.ts'
import { GetCurrentCredential } from './overview/current-credential.ts'
import { ListMetrics } from './overview/metrics.ts'
import { ListNodes } from './overview/nodes.ts'
import { ListSearchResults } from './overview/search.ts'
import { ListWebSocketClients } from './overview/websockets.ts'
import { GetBlock } from './query/blocks.ts'
import { ListInternalTransactions } from './query/internal-transactions.ts'
import { GetPendingTransaction, ListPendingTransactions } from './query/pending-transactions.ts'
import {
  GetTransaction,
  GetTransactionReceipt,
  ListLogs,
  ListTransactions,
} from './query/transactions.ts'
import {
  DisableSink,
  EnableSink,
  ListSinks,
  RegisterSink,
  RemoveSink,
  UpdateSink,
} from './sinks/sinks.ts'
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
import { ListAssets, RemoveAsset } from './wallets/assets.ts'
import { ListBalanceHistory } from './wallets/balance-history.ts'
import { ListContracts, RegisterContract, RemoveContract } from './wallets/contracts.ts'
import { ImportAsset } from './wallets/import-asset.ts'
import { RefreshAssetBalances } from './wallets/refresh.ts'
import { ListTransfers } from './wallets/transfers.ts'
import {
  GetAddress,
  GetWallet,
  ListWallets,
  RegisterWallet,
  RemoveWallet,
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

/** The checked request of an operation of a service. */
type RequestOf<
  service extends Service,
  name extends keyof Catalogue<service>,
> = Catalogue<service>[name] extends { request: infer request extends object } ? request : never

/** One handler for each operation of a service. */
export type HandlersOf<service extends Service> = {
  readonly [name in keyof Catalogue<service>]: Handler<
    RequestOf<service, name>,
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
  CreateStreamToken,
  DeleteCredential,
  DeleteOrganization,
  DeleteRateLimit,
  DisableOrganization,
  EnableOrganization,
  GetCurrentCredential,
  GetOrganizationByDomain,
  GetOrganizationDeletion,
  GetRateLimit,
  GetUsage,
  ListAuditEvents,
  ListChains,
  ListCredentials,
  ListEffectiveRateLimits,
  ListMetrics,
  ListNodes,
  ListOrganizations,
  ListProblems,
  ListRateLimits,
  RevokeCredential,
  RotateCredential,
  SetQuota,
  RenameOrganization,
  ListSearchResults,
  ListMethodUsage,
  ListWebSocketClients,
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
  CreateStreamToken,
  GetWallet,
  ListAddresses,
  ListAssets,
  ListBalanceHistory,
  ListTransfers,
  ListWallets,
  RefreshAssetBalances,
  RegisterAddress,
  RegisterWallet,
  RemoveAddress,
  RemoveWallet,
  RenameWallet,
  DisableSink,
  EnableSink,
  ListSinks,
  RegisterSink,
  RemoveSink,
  UpdateSink,
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
  t: handlersOf<'t'>()({ ...wallets, GetAddress, ImportAsset, RemoveAsset }),
  s: handlersOf<'s'>()({ ...wallets, GetAddress, ImportAsset, RemoveAsset, UpdateConfirmation }),
  p: handlersOf<'p'>()({ ...wallets, ImportAsset }),
  c: handlersOf<'c'>()({ ...wallets, ...contracts, ...transactions, UpdateConfirmation }),
}

/** A checked call. The request has its defaults; the audit trail records it. */
export type PreparedCall = {
  request: object
  perform(context: Context): Promise<unknown>
}

/** Checks the body of a call. */
export type PrepareCall = (body: unknown) => PreparedCall

/** Whether this version performs an operation. */
export const hasHandler = ({ service, name }: Entry): boolean =>
  Object.hasOwn(handlers[service], name)

/** Joins the check and the handler of an operation; undefined where the service does not offer it. */
export const prepareOperation = (entry: Entry): PrepareCall | undefined =>
  prepareOf(entry.service, entry)

function prepareOf<service extends Service>(
  service: service,
  entry: Entry,
): PrepareCall | undefined {
  const table: HandlersOf<service> = handlers[service]
  return isKey(table, entry.name) ? prepareCall(table, entry.name, entry) : undefined
}

/** The check and the handler have the request type of the same row. */
function prepareCall<service extends Service, name extends keyof Catalogue<service>>(
  table: HandlersOf<service>,
  name: name,
  entry: Entry,
): PrepareCall {
  const check = createCheck<RequestOf<service, name>>(entry)
  const handler: Handler<RequestOf<service, name>, AnswerOf<service, name>> = table[name]
  return (body) => {
    const request = check(body)
    return { request, perform: (context) => handler(context, request) }
  }
}

const isKey = <table extends object>(table: table, name: PropertyKey): name is keyof table =>
  Object.hasOwn(table, name)
