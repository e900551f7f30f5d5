import { ChainUnavailableError } from '../chain.ts'
import type { Rpc } from './rpc.ts'

/** A call that reads a contract. */
export type ContractCall = { to: string; data: string }

const reverted =
  /revert|invalid opcode|out of gas|stack (?:under|over)flow|bad instruction|invalid jump|VM Exception|EVM error|execution error/i
// Whether the digits are pairs is asked beside it: within the pattern it takes four times as long.
const data = /^0x[0-9a-f]*$/i

/** What a contract returned; undefined when it failed, which is its own affair and no node's. */
export async function callContract(
  rpc: Rpc,
  { call, block, minBlock }: { call: ContractCall; block: unknown; minBlock?: number | undefined },
  signal: AbortSignal,
): Promise<string | undefined> {
  const answered = await rpc.try({
    method: '_call',
    params: [call, block],
    ...(minBlock !== undefined && { minBlock }),
    signal,
    accept: (result) =>
      typeof result === 'string' && result.length % 2 === 0 && data.test(result)
        ? result
        : undefined,
  })
  if (answered.kind === 'answer') return answered.answer
  if (answered.kind === 'error') {
    if (answered.code === 3 || reverted.test(answered.message)) return undefined
    throw new NodeRefusalError(answered.message)
  }
  throw new ChainUnavailableError('no node answered the call of a contract')
}

/** A node's error that is about the node or the block, not about the contract. */
export class NodeRefusalError extends ChainUnavailableError {
  override name = 'NodeRefusalError'
}
