import { type JsonShape, measureJson } from '../../lib/json/scan.ts'
import type { Decision } from '../limits/decision.ts'
import type { Admission } from './admit.ts'

/** Bodies up to this size are one call each: what they can cost is bounded by their size. */
export const smallBodyBytes = 8_192
const bytesPerCall = 16_384
// About as long to parse, at worst, as 16 KiB of text are to receive, check and sign.
const valuesPerCall = 2_048
/** Values of a body at all levels: arrays, objects, members and elements. */
export const maxBodyValues = 100_000

/** A larger body after its size and its values were counted against the limits. */
export type AdmittedBody = {
  decision: Decision
  /** How many calls it was counted as. */
  paid: number
  /** Undefined when it was refused before it was looked at. */
  shape: JsonShape | undefined
}

/**
 * Counts a body against the limits before it is parsed: first by its bytes, which needs no look at it,
 * then by its values, which needs one walk. A refused caller costs no more than that.
 */
export async function admitBody(
  admission: Admission,
  { organization_id, chain }: { organization_id: string; chain: string },
  body: { bytes: number; text(): string; maxDepth: number },
): Promise<AdmittedBody> {
  const bySize = Math.ceil(body.bytes / bytesPerCall)
  const first = await admission.admitUpTo(organization_id, chain, bySize)
  if (!first.decision.allowed) return { ...first, shape: undefined }
  const { maxDepth } = body
  const shape = measureJson(body.text(), { maxDepth, maxValues: maxBodyValues })
  const byValues = Math.ceil(shape.values / valuesPerCall)
  if (byValues <= bySize || shape.beyond) return { ...first, shape }
  return { ...(await admission.admitUpTo(organization_id, chain, byValues, first.paid)), shape }
}
