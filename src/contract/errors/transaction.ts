// Refusals of managed transactions. Conflicts are 409: the request is valid, and the state of the transaction, the address
// or the chain forbids it now.

import { maxOpenTransactions } from '../limits.ts'
import type { ErrorRow } from './row.ts'

/** What can go wrong with a managed transaction; part of the one table of errors. */
export const transactionErrors = {
  TRANSACTION_WOULD_FAIL: {
    status: 400,
    code: 'INVALID_ARGUMENT',
    rpc: -32602,
    retry: 'never',
    title: 'The transaction would fail on the chain',
    help: 'The node could not estimate its gas; `detail` says why, with the reason of the contract. With an explicit `gas` nothing is estimated and the transaction is created anyway.',
  },
  TRANSACTION_ID_TAKEN: {
    status: 409,
    code: 'ALREADY_EXISTS',
    rpc: -32602,
    retry: 'never',
    title: 'The transaction_id was used for another transaction',
    help: 'The id is the idempotency key: the same id with the same content on the same network returns the first transaction. Read it with GetTransaction, or choose another id.',
  },
  TRANSACTION_STATE_INVALID: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'The state of the transaction forbids the operation',
    help: 'Read it with GetTransaction. What each state allows is in the page on managed transactions.',
  },
  TRANSACTION_ALREADY_BROADCAST: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'The transaction is on its way and cannot be canceled here',
    help: 'Only another transaction with the same nonce can take its place: CreateTransaction with the same `from` and `nonce`, `to` equal to `from`, value 0 and a gas_price at least 10 % higher; then sign and send that one. The first one that is mined is final.',
  },
  INSUFFICIENT_FUNDS: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'The address cannot pay for the transaction',
    help: 'Nothing was created. The address needs `value` and `gas` × `gas_price` in the native coin; `detail` has the amounts. Fund it, and repeat the request with the same transaction_id.',
  },
  TOO_MANY_OPEN_TRANSACTIONS: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'The address has too many open transactions',
    help: `An organization may have ${maxOpenTransactions.toLocaleString('en')} transactions of one address that are neither canceled nor decided. List them with ListTransactions and \`transaction_state\`; send or cancel some.`,
  },
  TRANSACTION_REFUSED: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'The nodes refuse the transaction',
    help: 'No node accepted it; `detail` has their errors. It stays signed: send it again when the cause is fixed (such as missing funds), or cancel it and create another one.',
  },
  REPLACEMENT_UNDERPRICED: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'Another transaction has this nonce, and the gas price is too low to replace it',
    help: 'Give a gas_price at least 10 % higher than that of the other one (`errors` names the least), leave gas_price out, or leave the nonce out to get a free one.',
  },
} as const satisfies Record<string, ErrorRow>
