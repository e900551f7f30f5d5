// Managed transactions on EVM chains: create, sign outside, send, cancel. It uses
// `storage/transactions` and the `Sending` of a chain. It guarantees that a signed transaction is stored
// before it is sent, that the same bytes are sent again after a crash, and that a nonce is given to one
// transaction only.

import { createHash } from 'node:crypto'
import { OperationError } from '../../contract/errors/errors.ts'
import { maxOpenTransactions } from '../../contract/limits.ts'
import type { WalletAnswer } from '../../contract/operations/calls.ts'
import { isUuid } from '../../lib/ids.ts'
import type { Db } from '../../storage/pg/database.ts'
import { lockSenderAnd, type Sender } from '../../storage/transactions/nonces.ts'
import { toTransactionRecord } from '../../storage/transactions/record.ts'
import { isSenderFull } from '../../storage/transactions/sender-nonces.ts'
import {
  findTransactionById,
  insertTransaction,
  type TransactionRow,
} from '../../storage/transactions/transactions.ts'
import type { WalletScope } from '../../storage/wallets/tables.ts'
import { findWalletWith } from '../../storage/wallets/wallets.ts'
import { notifyOfStates } from '../../storage/webhooks/state-notifications.ts'
import type { Context, WalletHandler } from '../context.ts'
import { type Admission, checkOpenQuota, withinOpenQuota } from '../quotas.ts'
import { readAddress } from '../wallets/address-fields.ts'
import { askChain } from '../wallets/scope.ts'
import { checkAmounts } from './amounts.ts'
import { checkAgainstChain } from './checks.ts'
import { type CreateRequest, type Prepared, readDefaults } from './defaults.ts'
import { chooseNonce } from './nonce.ts'
import { type SendingScope, sendingScope } from './scope.ts'

/** Creates a transaction to be signed outside. */
export const CreateTransaction: WalletHandler<'CreateTransaction'> = async (context, request) => {
  const scope = await sendingScope(context)
  checkAmounts(request)
  const { family } = scope
  // In one form before it is hashed: the same request in capitals is the same request.
  const data = (request.data ?? '0x').toLowerCase()
  return await create(context, scope, {
    request: Object.assign({}, request, { data }),
    prepared: {
      from: readAddress(family, request.from, 'from'),
      to: readAddress(family, request.to, 'to'),
      value: BigInt(request.value),
      data: Buffer.from(data.slice(2), 'hex'),
    },
  })
}

type CreateAnswer = WalletAnswer<'CreateTransaction'>

/** Fills in what was left out, finds a nonce and stores the transaction. */
export async function create(
  context: Context<CreateAnswer>,
  scope: SendingScope,
  { request, prepared }: { request: CreateRequest; prepared: Prepared },
): Promise<CreateAnswer> {
  const { db, clock, ids, signal } = context
  const { wallet_id, transaction_id = ids.uuid() } = request
  const request_hash = hashRequest(context.operation, request)
  const present = (row: TransactionRow) => ({
    transaction: toTransactionRecord(row, new Date(clock.now())),
  })
  // First of all: a repeated request must give the same answer although prices and nonces have changed since.
  const repeated = await findRepeated(context, scope, { transaction_id, request_hash })
  if (repeated) return present(repeated)

  // After the look-up of the id, because a wallet may be removed between a request and its repetition.
  const found = isUuid(wallet_id)
    ? await findWalletWith(db, scope, { wallet_id, address: prepared.from })
    : undefined
  if (!found) throw new OperationError('WALLET_NOT_FOUND')
  if (!found.has_address)
    throw new OperationError('ADDRESS_NOT_FOUND', {
      detail: 'The wallet does not have the address.',
      errors: [
        { field: 'from', reason: 'ADDRESS_NOT_FOUND', detail: 'Is no address of the wallet.' },
      ],
    })
  // Before nodes are asked: a caller that is refused again and again costs no more than these look-ups.
  if (await isSenderFull(db, { ...scope, from: prepared.from })) throw tooManyOpen()
  await checkOpenQuota(context, scope.organization_id)
  // Outside of a transaction: no node is called while a lock is held.
  const defaults = await askChain(() => readDefaults(context, scope, { request, prepared }))
  // The nodes may have taken long. For a caller that is gone no nonce is used.
  signal.throwIfAborted()

  const choose = async (trx: Db, sender: Sender) => {
    const { value, data } = prepared
    const { nonce, gas_price, missing_nonce, open } = await chooseNonce(trx, sender, defaults)
    if (open.count >= maxOpenTransactions) throw tooManyOpen()
    const warnings = checkAgainstChain(
      { value, gas: defaults.gas, gas_price, nonce },
      {
        ...defaults,
        ...defaults.limits,
        intrinsic_gas: scope.sending.intrinsicGas(data),
        committed: open.cost,
        missing_nonce,
      },
    )
    return { nonce, gas_price, warnings, isLowest: nonce === open.free }
  }
  const store = async (trx: Db, admission: Admission) => {
    const { from, to, value, data } = prepared
    const sender = { ...scope, from }
    // Locks the sender, so that the sums and counts below cannot change before the insert.
    await lockSenderAnd(trx, sender, admission.lock)
    await admission.check(trx)
    const chosen = await choose(trx, sender).catch(asRefusal)
    // Returned, because the transaction is to be committed: what was read of the address is kept for the next request.
    if (chosen instanceof OperationError) return chosen
    const { isLowest, ...rest } = chosen
    const now = new Date(clock.now())
    const created = await insertTransaction(
      trx,
      {
        organization_id: scope.organization_id,
        transaction_id,
        network_id: scope.network_id,
        wallet_id,
        transaction_state: 'TRANSACTION_STATE_CREATED',
        from,
        to,
        value,
        gas: defaults.gas,
        data,
        eip155_chain_id: defaults.eip155_chain_id,
        request_hash,
        create_time: now,
        ...rest,
      },
      { isLowest },
    )
    // In the same transaction: a state without its notification, or the reverse, cannot be stored.
    if (created) await notifyOfStates(trx, [created], now)
    if (created) await context.record?.(trx, present(created))
    return created
  }
  const row = await withinOpenQuota(context, scope.organization_id, (admission) =>
    db.transaction().execute((trx) => store(trx, admission)),
  )
  if (row instanceof OperationError) throw row
  // A concurrent request created the same id first.
  return present(row ?? (await findRepeated(context, scope, { transaction_id, request_hash }))!)
}

const tooManyOpen = () => new OperationError('TOO_MANY_OPEN_TRANSACTIONS')

const asRefusal = (error: unknown): OperationError => {
  if (error instanceof OperationError) return error
  throw error
}

/** The stored transaction of the same id and content; the same id with another content is refused. */
async function findRepeated(
  { db }: Context,
  scope: WalletScope,
  { transaction_id, request_hash }: { transaction_id: string; request_hash: Buffer },
): Promise<TransactionRow | undefined> {
  const row = await findTransactionById(db, scope.organization_id, transaction_id)
  if (row && row.network_id !== scope.network_id)
    throw new OperationError('TRANSACTION_ID_TAKEN', {
      detail: 'A transaction on another network has the transaction_id.',
    })
  if (row && !row.request_hash.equals(request_hash))
    throw new OperationError('TRANSACTION_ID_TAKEN')
  return row
}

/** Of what the user asked for, before defaults, in one order. */
function hashRequest(operation: string, request: object): Buffer {
  const sorted = Object.entries({ ...request, transaction_id: undefined })
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256')
    .update(JSON.stringify([operation, sorted]))
    .digest()
}
