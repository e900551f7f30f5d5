import { toHex } from '../../hex.ts'
import type { PaymentProblem, TokenPayment } from '../../sending.ts'
import { callContract } from '../balances/contract-calls.ts'
import { encodeCall, readWord } from '../codec/abi.ts'
import type { Rpc } from '../pool/rpc.ts'

/** What the books of the token say against a payment. */
export function createExplainPayment({ rpc }: { rpc: Rpc }) {
  return async (
    payment: TokenPayment,
    signal: AbortSignal,
  ): Promise<PaymentProblem | undefined> => {
    const { contract_type, contract_address, from, value } = payment
    const to = toHex(contract_address)
    const read = async (data: string): Promise<bigint | undefined> => {
      const returned = await callContract(rpc, { call: { to, data }, block: 'latest' }, signal)
      return returned === undefined ? undefined : readWord(returned)
    }
    if (contract_type === 'CONTRACT_TYPE_ERC20') {
      const balance = await read(encodeCall('balanceOf(address)', from))
      if (balance === undefined)
        return { part: 'contract_address', detail: `${to} is no ERC-20 contract.` }
      if (balance >= value) return undefined
      return against(`The balance of ${toHex(from)} is ${balance}, less than ${value}.`)
    }
    const owner = await read(encodeCall('ownerOf(uint256)', value))
    if (owner === undefined) return against(`The item ${value} does not exist in ${to}.`)
    if (owner === BigInt(toHex(from))) return undefined
    return against(`${toHex(from)} is not the owner of the item ${value}.`)
  }
}

const against = (detail: string): PaymentProblem => ({ part: 'value', detail })
