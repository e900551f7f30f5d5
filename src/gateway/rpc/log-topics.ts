import type { RawJson } from '../../chains/evm/pool/pool-types.ts'
import { jsonText, scanArray } from '../../lib/json/scan.ts'
import type { LogFilter } from './check-filter.ts'

/** A filter that all nodes read in the same way, and what is left to compare in their answers. */
export type PlainFilter = {
  filter: LogFilter
  /** Logs with fewer topics do not match. */
  leastTopics: number
}

/**
 * Nodes read wildcards in different ways: for geth a log must have at least as many topics as the filter
 * has positions, for anvil and Reth trailing wildcards mean nothing; an empty list of alternatives is a
 * wildcard or an error. So wildcards are sent as null, trailing ones are left out, and the rule of
 * `matchesKeys` is applied to what comes back. Returns the same filter where nothing has to change.
 */
export function plainFilter(filter: LogFilter): PlainFilter {
  const { topics, address } = filter
  const hasNoAddress = Array.isArray(address) && address.length === 0
  const plain = (topics ?? []).map((topic) => (isWildcard(topic) ? null : topic))
  const length = plain.findLastIndex((topic) => topic !== null) + 1
  const isSame = plain.length === length && plain.every((topic, at) => topic === topics?.[at])
  if (isSame && !hasNoAddress) return { filter, leastTopics: 0 }
  const { address: _, topics: __, ...rest } = filter
  return {
    filter: {
      ...rest,
      ...(address != null && !hasNoAddress && { address }),
      ...(length > 0 && { topics: plain.slice(0, length) }),
    },
    leastTopics: plain.length > length ? plain.length : 0,
  }
}

const isWildcard = (topic: string | null | readonly (string | null)[]): boolean =>
  topic === null || (typeof topic !== 'string' && (topic.length === 0 || topic.includes(null)))

/** The logs with at least that many topics, byte for byte; undefined when it is not a list of logs. */
export function withTopics(logs: RawJson, least: number): RawJson | undefined {
  const kept: RawJson[] = []
  const end = scanArray(jsonText(logs), logs.indexOf('['), (from, to) => {
    const text = logs.slice(from, to)
    const count = countTopics(text)
    if (count !== undefined && count >= least) kept.push(text)
    return count !== undefined
  })
  return end < 0 ? undefined : `[${kept.join(',')}]`
}

function countTopics(log: RawJson): number | undefined {
  try {
    const { topics } = JSON.parse(log)
    return Array.isArray(topics) ? topics.length : undefined
  } catch {
    return undefined
  }
}
