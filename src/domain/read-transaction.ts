import type { Family } from '../chains/chain.ts'
import { invalidRequest } from '../contract/validate.ts'

/** The transaction that a request names, by the field and in the form of its chain. */
export function readTransaction(
  family: Pick<Family, 'transactionField' | 'parseTransactionHash'>,
  request: { transaction_hash?: string; transaction_digest?: string },
): Buffer | undefined {
  const { transactionField: field } = family
  const text = request[field]
  if (text === undefined) return undefined
  const hash = family.parseTransactionHash(text)
  if (hash) return hash
  throw invalidRequest([
    { field, reason: 'INVALID_FORMAT', detail: 'Is not a transaction identifier of this chain.' },
  ])
}
