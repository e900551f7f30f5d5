import type { Catalogue, Entry } from './operations/catalogue.ts'
import { includesRole, type Role } from './roles.ts'
import type { Access } from './scopes.ts'
import type { Service } from './variant.ts'

type OperationName = { [service in Service]: keyof Catalogue<service> }[Service]

/** Every operation, whichever service offers it. One that is missing here does not compile. */
const operationAccess: { readonly [name in OperationName]: Access } = {
  // Administration.
  CreateCredential: 'write',
  CreateOrganization: 'write',
  DeleteCredential: 'write',
  DeleteOrganization: 'write',
  DeleteRateLimit: 'write',
  DisableOrganization: 'write',
  EnableOrganization: 'write',
  GetOrganizationByDomain: 'read',
  GetOrganizationDeletion: 'read',
  GetRateLimit: 'read',
  GetUsage: 'read',
  ListAuditEvents: 'read',
  ListCredentials: 'read',
  ListEffectiveRateLimits: 'read',
  ListMethodUsage: 'read',
  ListOrganizations: 'read',
  ListRateLimits: 'read',
  RenameOrganization: 'write',
  RevokeCredential: 'write',
  RotateCredential: 'write',
  SetQuota: 'write',
  SetRateLimit: 'write',
  UpdateCredential: 'write',
  // Overview.
  GetCurrentCredential: 'read',
  ListChains: 'read',
  ListMetrics: 'read',
  ListNodes: 'read',
  ListProblems: 'read',
  ListSearchResults: 'read',
  ListWebSocketClients: 'read',
  // Event streams.
  CreateStreamToken: 'read',
  // Chain queries.
  GetBlock: 'read',
  GetPendingTransaction: 'read',
  GetTransaction: 'read',
  GetTransactionReceipt: 'read',
  ListInternalTransactions: 'read',
  ListLogs: 'read',
  ListPendingTransactions: 'read',
  ListTransactions: 'read',
  // Wallets.
  BatchRegisterAddresses: 'write',
  BatchRemoveAddresses: 'write',
  GetAddress: 'read',
  GetWallet: 'read',
  ImportAsset: 'write',
  ListAddresses: 'read',
  ListAssets: 'read',
  ListBalanceHistory: 'read',
  ListTransfers: 'read',
  ListWallets: 'read',
  RefreshAssetBalances: 'write',
  RegisterAddress: 'write',
  RegisterWallet: 'write',
  RemoveAddress: 'write',
  RemoveAsset: 'write',
  RemoveWallet: 'write',
  RenameWallet: 'write',
  UpdateConfirmation: 'write',
  // Webhooks.
  DisableWebhook: 'write',
  EnableWebhook: 'write',
  GetWebhookSigningSecret: 'write',
  ListWebhookAttempts: 'read',
  ListWebhookHeaders: 'write',
  ListWebhookHistories: 'read',
  ListWebhooks: 'read',
  RegisterWebhook: 'write',
  RegisterWebhookHeader: 'write',
  RemoveWebhook: 'write',
  RemoveWebhookHeader: 'write',
  RetryWebhookHistory: 'write',
  RotateWebhookSigningSecret: 'write',
  SendTestWebhook: 'write',
  UpdateWebhook: 'write',
  // Sinks.
  DisableSink: 'write',
  EnableSink: 'write',
  ListSinks: 'read',
  RegisterSink: 'write',
  RemoveSink: 'write',
  UpdateSink: 'write',
  // Managed transactions and token contracts.
  CancelTransaction: 'write',
  CreateTokenTransaction: 'write',
  CreateTransaction: 'write',
  GetTransactionMessageToSign: 'read',
  ListContracts: 'read',
  RegisterContract: 'write',
  RemoveContract: 'write',
  SendTransaction: 'write',
  SubmitTransactionSignature: 'write',
}

/** Whether an operation only reads. */
export const accessOf = ({ name }: Pick<Entry, 'name'>): Access =>
  operationAccess[name as OperationName] ?? 'write'

const showing: ReadonlySet<string> = new Set<OperationName>([
  'GetWebhookSigningSecret',
  'ListWebhookHeaders',
])

/** Whether an operation shows a secret and changes nothing. */
export const onlyShows = (name: string): boolean => showing.has(name)

/** The narrowest role that may call an operation: what a refusal names. */
export const roleFor = (entry: Pick<Entry, 'name' | 'row'>): Role =>
  entry.row.role ?? (accessOf(entry) === 'read' ? 'ROLE_READER' : 'ROLE_MEMBER')

/** Whether a role may call an operation. */
export const roleMayCall = (role: Role, entry: Pick<Entry, 'name' | 'row'>): boolean =>
  includesRole(role, roleFor(entry))
