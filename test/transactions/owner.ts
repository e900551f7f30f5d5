import { sign } from 'viem/accounts'
import { OperationError } from '../../src/contract/errors/errors.ts'
import { anvilKeys, type SendingBench } from './harness.ts'

/** What the owner of one wallet does with its transactions. */
export async function createOwner({ caller, accounts }: SendingBench) {
  const [from, friend] = accounts as [string, string]
  const wallet = await caller.call('RegisterWallet', { name: 'w', address: from, confirmation: 3 })
  const wallet_id: string = wallet.wallet_id
  const messageOf = async (transaction_id: string): Promise<`0x${string}`> =>
    (await caller.call('GetTransactionMessageToSign', { transaction_id }))
      .transaction_message_to_sign
  const create = async (fields: object = {}) =>
    (await caller.call('CreateTransaction', { wallet_id, from, to: friend, value: '5', ...fields }))
      .transaction
  const submit = (transaction_id: string, signature: string) =>
    caller.call('SubmitTransactionSignature', { transaction_id, signature })
  const signed = async (transaction_id: string, by: `0x${string}` = anvilKeys[0]) => {
    const hash = await messageOf(transaction_id)
    await submit(transaction_id, await sign({ hash, privateKey: by, to: 'hex' }))
  }
  const sendOne = async (transaction_id: string) =>
    (await caller.call('SendTransaction', { transaction_id })).transaction
  const whole = async (fields: object = {}) => {
    const { transaction_id } = await create(fields)
    await signed(transaction_id)
    return await sendOne(transaction_id)
  }
  return { wallet_id, messageOf, create, submit, signed, sendOne, whole }
}

/** A refusal as the caller sees it: the reason, and the fields with their details. */
export const refusal = (work: Promise<unknown>): Promise<OperationError> =>
  work.then(
    () => {
      throw new Error('was not refused')
    },
    (error: unknown) => {
      if (error instanceof OperationError) return error
      throw error
    },
  )
