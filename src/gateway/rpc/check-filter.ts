import { isAddress, isBlock, isHash, isQuantity, toNumber } from './encodings.ts'

const maxAddresses = 1_000
const maxPositions = 4
const maxAlternatives = 1_000

/** The fields of a Filter (spec 2.13); both spellings of the block hash are taken. */
export type LogFilter = {
  address?: string | readonly string[] | null
  blockhash?: string | null
  blockHash?: string | null
  fromBlock?: string | null
  toBlock?: string | null
  topics?: readonly (string | null | readonly (string | null)[])[] | null
}

const fields = new Set(['address', 'blockhash', 'blockHash', 'fromBlock', 'toBlock', 'topics'])

/**
 * What is wrong with the fields of a Filter, undefined when nothing is. Whether they agree is another
 * matter: for `getLogs` that is for nodes to say.
 */
export function findFilterProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return 'must be a Filter object'
  for (const name of Object.keys(value))
    if (!fields.has(name)) return `has the unknown field ${JSON.stringify(name.slice(0, 50))}`
  const filter = value as Record<string, unknown>
  return (
    addressProblem(filter.address ?? []) ??
    blockProblem(filter as LogFilter) ??
    topicsProblem(filter.topics ?? [])
  )
}

/** The block hash of a filter under either spelling. */
export const filterHash = (filter: LogFilter): string | undefined =>
  filter.blockHash ?? filter.blockhash ?? undefined

function addressProblem(address: unknown): string | undefined {
  const list: unknown[] = Array.isArray(address) ? address : [address]
  if (list.length > maxAddresses) return `address has more than ${maxAddresses} entries`
  return list.every(isAddress) ? undefined : 'address must be 0x and 40 hex digits, or a list'
}

function blockProblem(filter: LogFilter): string | undefined {
  const { fromBlock, toBlock } = filter
  const hash = filterHash(filter)
  if (hash !== undefined) {
    if (!isHash(hash)) return 'blockhash must be 0x and 64 hex digits'
    if (filter.blockHash && filter.blockhash) return 'blockhash and blockHash are the same field'
  }
  const must = 'must be a quantity, earliest, latest or pending'
  if (fromBlock != null && !isBlock(fromBlock)) return `fromBlock ${must}`
  if (toBlock != null && !isBlock(toBlock)) return `toBlock ${must}`
  return undefined
}

/** Whether the blocks of a checked Filter contradict each other: no log could ever match. */
export function findRangeProblem(filter: LogFilter): string | undefined {
  const { fromBlock, toBlock } = filter
  if (filterHash(filter) !== undefined && (fromBlock ?? toBlock ?? undefined) !== undefined)
    return 'blockhash cannot stand beside fromBlock or toBlock'
  return isQuantity(fromBlock) && isQuantity(toBlock) && toNumber(fromBlock) > toNumber(toBlock)
    ? 'fromBlock must not be after toBlock'
    : undefined
}

function topicsProblem(topics: unknown): string | undefined {
  if (!Array.isArray(topics)) return 'topics must be a list'
  if (topics.length > maxPositions) return `topics has more than ${maxPositions} positions`
  for (const [position, topic] of topics.entries()) {
    const list: unknown[] = Array.isArray(topic) ? topic : [topic]
    if (list.length > maxAlternatives)
      return `topics[${position}] has more than ${maxAlternatives} alternatives`
    if (!list.every((one) => one === null || isHash(one)))
      return `topics[${position}] must be null, 0x and 64 hex digits, or a list of these`
  }
  return undefined
}
