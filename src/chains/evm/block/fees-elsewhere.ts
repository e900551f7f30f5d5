import type { BlockRef } from '../../chain.ts'
import { toHex } from '../../hex.ts'
import type { RawReceipt, ReadTransaction } from '../codec/raw.ts'
import { type EvmNodes, reached } from '../pool/nodes.ts'
import type { Rpc } from '../pool/rpc.ts'
import { createCallees, createNamedAddresses } from './names.ts'
import { nativeEffects } from './native.ts'

/** Reads what a transaction cost its sender, from other nodes than some; undefined where none says it. */
export type ReadFee = (
  transaction: { hash: string; block: BlockRef },
  asked: { avoid: readonly string[]; timeoutMs: number; signal: AbortSignal },
) => Promise<bigint | undefined>

/** Makes the function that reads fees a second time. */
export function createReadFee({ rpc, pool }: { rpc: Rpc; pool: EvmNodes }): ReadFee {
  return async ({ hash, block }, asked) => {
    const blockHash = toHex(block.hash)
    const read = async <kind extends { blockHash?: unknown }>(method: string) => {
      const answered = await rpc.try<kind>({
        method,
        params: [hash],
        ...reached(pool, block.number),
        ...asked,
        everyNode: true,
        accept: (result) => {
          const found = result as kind | null
          return String(found?.blockHash).toLowerCase() === blockHash ? (found as kind) : undefined
        },
      })
      return answered.kind === 'answer' ? answered.answer : undefined
    }
    const [transaction, receipt] = await Promise.all([
      read<ReadTransaction & { blockHash?: unknown }>('_getTransactionByHash'),
      read<RawReceipt>('_getTransactionReceipt'),
    ])
    if (!transaction || !receipt) return undefined
    const names = { addresses: createNamedAddresses(), callees: createCallees() }
    try {
      return nativeEffects({ transaction, receipt, internal: [] }, names).fee
    } catch {
      // The same code has read the first answer: this one has another form.
      return undefined
    }
  }
}
