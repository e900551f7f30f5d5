import { NodeFault } from '../nodes/fault.ts'
import type { VerificationCounts } from '../verification.ts'
import { bytesOf } from './header.ts'
import type { PolkadotNodes } from './nodes.ts'
import { findProven, readProof } from './trie.ts'

/** Values of storage by their keys; null where there is none. */
export type Values = ReadonlyMap<string, string | null>

/** Some keys of the state after a block. */
export type StorageQuery = {
  keys: readonly string[]
  block: { number: number; hash: string }
}

/** Reads keys of a state, in one request. */
export async function readStorage(
  nodes: PolkadotNodes,
  { keys, block }: StorageQuery,
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

/** The same with a proof that these are the values of the state to which the header commits. */
export async function readProvenStorage(
  nodes: PolkadotNodes,
  { keys, block, root, counts }: StorageQuery & { root: string; counts: VerificationCounts },
  signal: AbortSignal,
): Promise<Values> {
  return await nodes.ask({
    method: 'state_getReadProof',
    params: [keys, block.hash],
    reached: block.number,
    stateOf: block.number,
    signal,
    accept: (result) => {
      const proof = readProof((result as { proof: string[] }).proof.map(bytesOf))
      try {
        const values = keys.map((key): [string, string | null] => {
          const value = findProven(proof, bytesOf(root), bytesOf(key))
          return [key, value && `0x${value.toString('hex')}`]
        })
        counts.check('states')
        return new Map(values)
      } catch (error) {
        const cause = error instanceof Error ? error.message : String(error)
        const reason = `the state of block ${block.number} is not proven: ${cause}`
        counts.refuse('states', reason)
        throw new NodeFault('invalid', reason)
      }
    },
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
