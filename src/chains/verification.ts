/**
 * How much of what nodes say is verified. `structural` checks what headers commit to, without further requests.
 * `full` also asks for the proofs that the chain offers, which costs requests and time.
 */
export type Verification = 'full' | 'structural'

/** What `/status` shows of it. */
export type VerificationStatus = {
  mode: Verification
  /** S, P, T: where the first validators came from; null before they are known. */
  anchor?: string | null
  /** How many things of a kind were verified, by kind. */
  checked: Record<string, number>
  /** How many were refused because they are not what the header commits to, by kind. */
  refused: Record<string, number>
  /** What was refused last, and why; missing where nothing was. */
  last_refusal?: string
}

/** Counters of what is verified. */
export type VerificationCounts = ReturnType<typeof createVerificationCounts>

/** Counts what is verified. */
export function createVerificationCounts(mode: Verification) {
  const checked: Record<string, number> = {}
  const refused: Record<string, number> = {}
  let last_refusal: string | undefined
  const add = (counts: Record<string, number>, kind: string, by = 1) => {
    counts[kind] = (counts[kind] ?? 0) + by
  }
  return {
    mode,
    check: (kind: string, by?: number): void => add(checked, kind, by),
    refuse: (kind: string, reason?: string): void => {
      add(refused, kind)
      last_refusal = reason ?? last_refusal
    },
    status: (): VerificationStatus => ({
      mode,
      checked: { ...checked },
      refused: { ...refused },
      ...(last_refusal !== undefined && { last_refusal }),
    }),
  }
}
