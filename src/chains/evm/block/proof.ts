import { typeOf } from '../codec/raw.ts'
import { depositType } from './fees.ts'

/**
 * How transactions and receipts are proved: by the header's roots; receipts by its bloom only; or
 * (a chain with rules of its own) not at all.
 */
export type Proof = 'root' | 'bloom' | 'none'

/** How far the blocks of a network must be proved. */
export type ProofRules = {
  proof: Proof
  /** Transaction types that the operator accepts unproven: their encoding is not known here, or is another one. */
  unproven_types: ReadonlySet<number>
}

const provableTypes = new Set([0, 1, 2, 3, 4, depositType])

/** Whether transactions or receipts can be proved, are taken without a proof, or are refused. */
export function provabilityOf(
  typed: readonly { type?: string | undefined }[],
  { proof, unproven_types }: ProofRules,
): 'proved' | 'unproved' | 'refused' {
  if (proof !== 'root') return 'unproved'
  let found: 'proved' | 'unproved' = 'proved'
  for (const one of typed) {
    const type = typeOf(one)
    if (unproven_types.has(type)) found = 'unproved'
    // An invented type must not switch off the proof of the whole block.
    else if (!provableTypes.has(type)) return 'refused'
  }
  return found
}
