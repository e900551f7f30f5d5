// Counting must not cost a statement per call: counts stay in memory, bounded by the number of keys, and are stored in batches.

import type { MethodUsage } from '../../storage/access/method-usage.ts'
import type { Principal } from './principal.ts'

/** How a call of an operation ended: refused is refused by a rate limit. */
export type OperationOutcome = 'done' | 'failed' | 'refused'

type Usage = Omit<MethodUsage, 'day'>

/** Counts the operations of every key, beside the calls of the gateway. */
export type OperationUsage = {
  count(principal: Principal, service: string, operation: string, outcome: OperationOutcome): void
  /** What was counted since this was last asked. */
  take(): Usage[]
}

/** Keys that are counted at the same time; more of them are handed on early. */
const maxKeys = 10_000

/** Makes the counter. An operation is counted as a method of its service, on no network. */
export function createOperationUsage(spill: (usage: Usage[]) => void): OperationUsage {
  // Credential, then service and operation: no text is put together for a call.
  let keys = new Map<string, Map<string, Map<string, Usage>>>()

  const take = (): Usage[] => {
    const taken = keys
    keys = new Map()
    return [...taken.values()].flatMap((services) =>
      [...services.values()].flatMap((operations) => [...operations.values()]),
    )
  }

  return {
    count({ organization_id, credential_id }, service, operation, outcome) {
      if (keys.size >= maxKeys && !keys.has(credential_id)) spill(take())
      const operations = inner(inner(keys, credential_id), service)
      let usage = operations.get(operation)
      if (!usage) {
        usage = {
          organization_id,
          credential_id,
          chain: service,
          network: '',
          method: operation,
          call_count: 0,
          error_count: 0,
          refused_count: 0,
        }
        operations.set(operation, usage)
      }
      usage.call_count++
      if (outcome !== 'done') usage.error_count++
      if (outcome === 'refused') usage.refused_count++
    },
    take,
  }
}

function inner<value>(map: Map<string, Map<string, value>>, key: string): Map<string, value> {
  let found = map.get(key)
  if (!found) {
    found = new Map()
    map.set(key, found)
  }
  return found
}
