import type { RawJson } from '../../chains/evm/pool/pool-types.ts'
import { jsonText, scanArray } from '../../lib/json/scan.ts'
import { filterHash, type LogFilter } from './check-filter.ts'
import { isQuantity, toNumber } from './encodings.ts'

/** The logs that a query selects, prepared for comparison. */
export type LogQuery = {
  /** Undefined for any address. */
  addresses: ReadonlySet<string> | undefined
  /** The alternatives of each position, undefined for anything. */
  topics: readonly (ReadonlySet<string> | undefined)[]
  /** The blocks that may hold them, both ends included. */
  from: number
  to: number
  /** Undefined for any block of that range. */
  hash: string | undefined
}

/** What a log is compared by; all in lower case. */
export type LogKeys = { address: string; topics: readonly string[] }

/** Makes a query of a filter that was checked. */
export function compileLogQuery(filter: LogFilter): LogQuery {
  const { address, topics } = filter
  const list = address == null ? [] : typeof address === 'string' ? [address] : address
  return {
    addresses: list.length === 0 ? undefined : new Set(list.map((one) => one.toLowerCase())),
    topics: (topics ?? []).map(alternativesOf),
    from: isQuantity(filter.fromBlock) ? toNumber(filter.fromBlock) : 0,
    to: isQuantity(filter.toBlock) ? toNumber(filter.toBlock) : Number.POSITIVE_INFINITY,
    hash: filterHash(filter)?.toLowerCase(),
  }
}

// As geth has it: a null among alternatives makes the whole position a wildcard.
function alternativesOf(topic: string | null | readonly (string | null)[]) {
  const list = Array.isArray(topic) ? topic : [topic as string | null]
  if (list.length === 0 || list.includes(null)) return undefined
  return new Set((list as string[]).map((one) => one.toLowerCase()))
}

/** The table of spec 4.5; a query with more positions than the log has topics never matches. */
export function matchesKeys(query: LogQuery, log: LogKeys): boolean {
  const { addresses, topics } = query
  if (topics.length > log.topics.length) return false
  if (addresses && !addresses.has(log.address)) return false
  for (let position = 0; position < topics.length; position++) {
    const alternatives = topics[position]
    if (alternatives && !alternatives.has(log.topics[position] as string)) return false
  }
  return true
}

/** Whether logs of this block are wanted at all. */
export const matchesBlock = (query: LogQuery, number: number, hash: string): boolean =>
  number >= query.from && number <= query.to && (query.hash === undefined || query.hash === hash)

/** The same text for queries that want the same. */
export function keyOfQuery({ addresses, topics, from, to, hash }: LogQuery): string {
  const set = (values: ReadonlySet<string> | undefined) => (values ? [...values].sort().join() : '')
  return `${set(addresses)}|${topics.map(set).join('/')}|${topics.length}|${from}|${to}|${hash ?? ''}`
}

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
