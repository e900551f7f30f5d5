import { hash } from 'node:crypto'
import type { TransactionFields } from '../../sending.ts'
import { encodeRlp, quantityDigits, type RlpItem } from './rlp.ts'

/** Both halves of a signature and which of the two points it means. */
export type Signature = { r: bigint; s: bigint; parity: 0 | 1 }

const digitsOf = (number: bigint | number): string => quantityDigits(`0x${number.toString(16)}`)

const itemsOf = ({ nonce, gas_price, gas, to, value, data }: TransactionFields): RlpItem[] => [
  digitsOf(nonce),
  digitsOf(gas_price),
  digitsOf(gas),
  to.toString('hex'),
  digitsOf(value),
  data.toString('hex'),
]

const keccak = (digits: string): Buffer => hash('keccak-256', Buffer.from(digits, 'hex'), 'buffer')

/** What the sender of a legacy transaction signs (EIP-155): it is good for one chain only. */
export const signingHash = (fields: TransactionFields): Buffer =>
  keccak(encodeRlp([...itemsOf(fields), digitsOf(fields.chain_id), '', '']))

/** The bytes of a signed legacy transaction, and the hash by which the chain knows it. */
export const signedTransaction = (
  fields: TransactionFields,
  { r, s, parity }: Signature,
): { raw: Buffer; hash: Buffer } => {
  const v = fields.chain_id * 2n + 35n + BigInt(parity)
  const digits = encodeRlp([...itemsOf(fields), digitsOf(v), digitsOf(r), digitsOf(s)])
  return { raw: Buffer.from(digits, 'hex'), hash: keccak(digits) }
}
