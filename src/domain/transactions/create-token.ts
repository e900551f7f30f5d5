// Token transfers become ordinary transactions to the contract. Everything after the encoding is shared with
// CreateTransaction.

import type { TokenPayment } from '../../chains/sending.ts'
import type { FieldError } from '../../contract/errors/errors.ts'
import type { WalletRequest } from '../../contract/operations/calls.ts'
import { invalidRequest } from '../../contract/validate.ts'
import type { WalletHandler } from '../context.ts'
import { readAddress } from '../wallets/address-fields.ts'
import { checkAmounts } from './amounts.ts'
import { create } from './create.ts'
import { sendingScope } from './scope.ts'

/** Creates the transfer of a token, to be signed outside. */
export const CreateTokenTransaction: WalletHandler<'CreateTokenTransaction'> = async (
  context,
  request,
) => {
  const scope = await sendingScope(context)
  const { family, signing, sending } = scope
  const { key, amount, contract_address, text } = readPayload(request)
  const fields = {
    value: `token_payload.${key}.${amount}`,
    contract_address: `token_payload.${key}.contract_address`,
  }
  // Before any node is asked: a number that no word holds cannot be encoded.
  checkAmounts(request, { [fields.value]: text })
  const contract = readAddress(family, contract_address, fields.contract_address)
  const payment: TokenPayment = {
    contract_type: request.contract_type,
    contract_address: contract,
    from: readAddress(family, request.from, 'from'),
    to: readAddress(family, request.to, 'to'),
    value: BigInt(text),
  }
  return await create(context, scope, {
    request,
    prepared: {
      from: payment.from,
      to: contract,
      // The amount is in the data: coin that is sent to a token contract is lost or refused.
      value: 0n,
      data: signing.encodePayment(payment),
      explain: async (signal) => {
        const problem = await sending.explainPayment(payment, signal)
        return problem && { field: fields[problem.part], detail: problem.detail }
      },
    },
  })
}

/** The one key of the payload that belongs to the contract's type. */
function readPayload({
  contract_type,
  token_payload,
}: Pick<WalletRequest<'CreateTokenTransaction'>, 'contract_type' | 'token_payload'>): {
  key: string
  amount: string
  contract_address: string
  text: string
} {
  const wanted = contract_type === 'CONTRACT_TYPE_ERC20' ? 'erc20' : 'erc721'
  const errors: FieldError[] = Object.keys(token_payload)
    .filter((key) => key !== wanted)
    .map((key) => ({
      field: `token_payload.${key}`,
      reason: 'NOT_ALLOWED',
      detail: `Does not belong to ${contract_type}.`,
    }))
  const { erc20, erc721 } = token_payload
  if (!token_payload[wanted])
    errors.push({
      field: `token_payload.${wanted}`,
      reason: 'REQUIRED',
      detail: `Is required for ${contract_type}.`,
    })
  if (errors.length > 0) throw invalidRequest(errors)
  return wanted === 'erc20'
    ? { ...erc20!, key: wanted, amount: 'value', text: erc20!.value }
    : { ...erc721!, key: wanted, amount: 'token_id', text: erc721!.token_id }
}
