import { checksumProblem, lowerChecksum } from '../../../client/src/checksum.ts'
import type { Path } from '../../app/config/problem.ts'
import type { Family } from '../../chains/chain.ts'
import { families } from '../../chains/registry.ts'
import type { WalletService } from '../../contract/variant.ts'
import type { PlanTools } from './plan-tools.ts'
import type { Ref } from './step.ts'

/** Where the parts of a chain are. */
export type ChainHere = {
  /** `base`, or `base/sepolia`. */
  at: string
  path: Path
  service: WalletService
  organization: Ref
  domain: string
}

/** The canonical text of an address; undefined, and a problem, where it is none. */
export function canonical(
  { service, path }: Pick<ChainHere, 'service' | 'path'>,
  text: string,
  tools: PlanTools,
  family: Family = families[service](),
): string | undefined {
  // The service prints addresses in one form only, so the comparison with stored ones needs that
  // form.
  const parsed = family.parseAddress(service === 'c' ? lowerChecksum(text) : text)
  if (parsed.ok) return family.formatAddress(parsed.bytes)
  const problem = service === 'c' ? checksumProblem(text) : undefined
  tools.refuse(path, `is not an address of this chain: ${problem ?? parsed.detail}`)
  return undefined
}
