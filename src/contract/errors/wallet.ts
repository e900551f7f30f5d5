import { pendingReadableHours } from '../limits.ts'
import type { ErrorRow } from './row.ts'

/** Failures of wallet operations; part of the one table of errors. */
export const walletErrors = {
  WALLET_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Wallet not found',
    help: 'Use ListWallets. A wallet of another organization or service gives the same answer.',
  },
  ADDRESS_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'The address is not registered',
    help: 'Register it with RegisterAddress first. The transfers of a removed address stay readable by `wallet_id`.',
  },
  ADDRESS_IN_OTHER_WALLET: {
    status: 409,
    code: 'ALREADY_EXISTS',
    rpc: -32602,
    retry: 'never',
    title: 'Another wallet of the organization has this address',
    help: 'An address belongs to one wallet. Find it with GetWallet and the address, and remove it there first. In a batch, `errors` names every such address, and nothing was changed.',
  },
} as const satisfies Record<string, ErrorRow>

/** Failures of chain queries; part of the one table of errors. */
export const queryErrors = {
  BLOCK_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Block not found',
    help: 'The block does not exist yet, or the nodes have pruned it.',
  },
  TRANSACTION_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Transaction not found',
    help: 'The transaction does not exist. Managed transactions: use ListTransactions; only transactions created by the service are managed. Query chain: it is in no block; it may be pending (GetPendingTransaction), or its block was reorganized.',
  },
  PENDING_TRANSACTION_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Pending transaction not found',
    help: `No node announced it while it was pending, or it left the pool more than ${pendingReadableHours} hours ago. Use GetTransaction for a transaction in a block.`,
  },
  TRACES_UNAVAILABLE: {
    status: 503,
    code: 'UNAVAILABLE',
    rpc: -32603,
    retry: 'after',
    title: 'No node of the network can trace this transaction',
    help: 'The operator has to add a node that offers `debug_traceTransaction` with `callTracer`, or `trace_transaction`, and that has the state of the block; `portolan chains` shows what each node can do. An empty list is never answered with this error.',
  },
} as const satisfies Record<string, ErrorRow>
