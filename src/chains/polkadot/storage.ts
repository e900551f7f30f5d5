import type { Nodes } from './nodes.ts'

/** Values of storage by their keys; null where there is none. */
export type Values = ReadonlyMap<string, string | null>

/** Reads some keys of the state after a block, in one request. */
export async function readStorage(
  nodes: Nodes,
  { keys, block }: { keys: readonly string[]; block: { number: number; hash: string } },
  signal: AbortSignal,
): Promise<Values> {
  return await nodes.ask({
    method: 'state_queryStorageAt',
    params: [keys, block.hash],
    reached: block.number,
    stateOf: block.number,
    signal,
    accept: (result) => readValues(result, keys),
  })
}

/** Every key that was asked for has its answer, or the answer is of no use. */
function readValues(result: unknown, keys: readonly string[]): Values | undefined {
  const [set] = result as [{ changes: [string, string | null][] }]
  const values = new Map(set.changes)
  const isWhole = keys.every((key) => {
    const value = values.get(key)
    // Whether the rest is hex shows when it is read; a look at every digit would cost more than that.
    return value === null || (typeof value === 'string' && value.startsWith('0x'))
  })
  return isWhole ? values : undefined
}
