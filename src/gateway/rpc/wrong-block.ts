import { readBlockText } from '../../chains/evm/codec/header-hash.ts'
import type { RpcReply } from '../../chains/evm/pool/pool-types.ts'

/** What a block was asked for by; -1 and empty where that is not known. */
export type AskedBlock = { number: number; hash: string }

/**
 * Whether a reply cannot be the requested block: it is another one, or its hash is not that of its header.
 * Headers of chains with rules of their own cannot be judged and pass.
 */
export function isWrongBlock(reply: RpcReply, asked: AskedBlock): boolean {
  if (!reply.ok || reply.result === 'null') return false
  const block = readBlockText(reply.result)
  if (!block) return true
  if (asked.hash !== '' && block.hash?.toLowerCase() !== asked.hash) return true
  if (asked.number >= 0 && block.number !== asked.number) return true
  return block.verdict === 'bad'
}

/**
 * Whether an answer is not about the transaction that was asked for: nodes and proxies before them have
 * been seen to mix up the answers of a batch.
 */
export const isOtherTransaction = (reply: RpcReply, hash: string): boolean =>
  reply.ok &&
  reply.result !== 'null' &&
  !reply.result.includes(hash) &&
  !reply.result.toLowerCase().includes(hash)
