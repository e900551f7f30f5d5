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
