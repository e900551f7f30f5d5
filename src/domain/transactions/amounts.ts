import type { FieldError } from '../../contract/errors/errors.ts'
import { invalidRequest } from '../../contract/validate.ts'

const words = 1n << 256n
// Nodes count gas in 64 bits.
const gasLimit = 1n << 64n
// What no node takes into its pool.
const longestData = 128 * 1024

type Amounts = { value?: string; gas?: string; gas_price?: string; data?: string }

/** Refuses numbers that no transaction can hold, all of them at once. */
export function checkAmounts(
  request: Amounts,
  others: Readonly<Record<string, string>> = {},
): void {
  const errors: FieldError[] = []
  const check = (field: string, text: string | undefined, limit: bigint) => {
    if (text !== undefined && BigInt(text) >= limit)
      errors.push({ field, reason: 'OUT_OF_RANGE', detail: `Must be less than ${limit}.` })
  }
  check('value', request.value, words)
  check('gas', request.gas, gasLimit)
  check('gas_price', request.gas_price, words)
  for (const [field, text] of Object.entries(others)) check(field, text, words)
  if (request.gas === '0')
    errors.push({ field: 'gas', reason: 'OUT_OF_RANGE', detail: 'Must be at least 1.' })
  if (request.data !== undefined && request.data.length > 2 + longestData * 2)
    errors.push({
      field: 'data',
      reason: 'TOO_LONG',
      detail: `Must have at most ${longestData} bytes.`,
    })
  if (errors.length > 0) throw invalidRequest(errors)
}
