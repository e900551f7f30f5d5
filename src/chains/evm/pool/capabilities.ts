import type { TransportOutcome } from '../transport/transport.ts'
import { meaningOf } from './node-error.ts'
import type { Capability, RawJson } from './pool-types.ts'

/** Makes one call to one node. */
export type Ask = (method: string, params: RawJson) => Promise<TransportOutcome>

const noHash = `"0x${'0'.repeat(64)}"`

// Cheap calls that a node without the capability refuses; what else it says of them is no matter.
const probes = (prefix: string): [Capability, method: string, params: RawJson][] => [
  ['block_receipts', `${prefix}_getBlockReceipts`, '["0x0"]'],
  ['debug_trace', 'debug_traceTransaction', `[${noHash},{"tracer":"callTracer"}]`],
  ['parity_trace', 'trace_transaction', `[${noHash}]`],
  ['parity_trace', 'trace_block', '["0x0"]'],
  ['txpool', 'txpool_status', '[]'],
]

/** What a node can do; undefined when it did not answer the questions. */
export async function probeCapabilities(
  ask: Ask,
  { prefix, archive }: { prefix: string; archive: boolean | undefined },
): Promise<Set<Capability> | undefined> {
  const found = new Set<Capability>()
  const missing = new Set<Capability>()
  for (const [capability, method, params] of probes(prefix)) {
    const outcome = await ask(method, params)
    const isThere = isSupported(outcome)
    if (isThere === undefined) return undefined
    if (isThere) found.add(capability)
    else missing.add(capability)
  }
  const hasArchive = archive ?? (await holdsOldState(ask, prefix))
  if (hasArchive === undefined) return undefined
  if (hasArchive) found.add('archive')
  return found.difference(missing)
}

// The state of the first block: gone on every node that prunes.
async function holdsOldState(ask: Ask, prefix: string): Promise<boolean | undefined> {
  const outcome = await ask(`${prefix}_getBalance`, `["0x${'0'.repeat(40)}","0x1"]`)
  if ('failed' in outcome) return undefined
  if (outcome.ok) return true
  // A chain that has no first block yet has not thrown anything away either.
  const genesis = await ask(`${prefix}_getBalance`, `["0x${'0'.repeat(40)}","0x0"]`)
  const number = await ask(`${prefix}_blockNumber`, '[]')
  if ('failed' in genesis || 'failed' in number) return undefined
  return genesis.ok && number.ok && number.result === '"0x0"'
}

function isSupported(outcome: TransportOutcome): boolean | undefined {
  // A service that forbids a method may do so with a status instead of an error.
  if ('failed' in outcome) return outcome.failed === 'http_status' ? false : undefined
  if (outcome.ok) return true
  const meaning = meaningOf(outcome.error)
  return meaning === 'rate_limited' ? undefined : meaning !== 'lacks_method'
}
