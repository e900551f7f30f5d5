import type { Signing } from '../../sending.ts'
import { encodeCall } from '../codec/abi.ts'
import { signedTransaction, signingHash } from '../codec/legacy-transaction.ts'
import { bytesOf } from '../codec/raw.ts'
import { readSignature } from '../codec/signature.ts'

/** The rules of signed transactions of the family. */
export const evmSigning: Signing = {
  signingHash,
  sign: async (fields, signature) => {
    const read = await readSignature(signature, fields)
    return read.ok ? { ok: true, ...signedTransaction(fields, read.signature) } : read
  },
  // `safeTransferFrom` fails where the receiving contract cannot handle the item; `transferFrom` would lose it.
  encodePayment: ({ contract_type, from, to, value }) =>
    bytesOf(
      contract_type === 'CONTRACT_TYPE_ERC20'
        ? encodeCall('transfer(address,uint256)', to, value)
        : encodeCall('safeTransferFrom(address,address,uint256)', from, to, value),
    ),
}
