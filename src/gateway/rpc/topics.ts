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
