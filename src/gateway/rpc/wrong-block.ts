import { type BlockText, readBlockText } from '../../chains/evm/codec/header-hash.ts'
import type { RawJson, RpcReply } from '../../chains/evm/pool/pool-types.ts'

/** Reads the text of a block; undefined when it is none. */
export type ReadBlock = (text: RawJson) => BlockText | undefined

/** Longer texts are not held: they are read again. */
const longestHeld = 1_048_576

/** Makes a reader that holds the last block: each check of one answer needs it, and it is parsed once. */
export function createBlockReader(): ReadBlock {
  let last = ''
  let block: BlockText | undefined
  return (text) => {
    if (text === last) return block
    const read = readBlockText(text)
    if (text.length > longestHeld) return read
    last = text
    block = read
    return read
  }
}

/** What a block was asked for by; -1 and empty where that is not known. */
export type AskedBlock = { number: number; hash: string }

/**
 * Whether a reply cannot be the requested block: it is another one, or its hash is not that of its header.
 * Headers of chains with rules of their own cannot be judged and pass.
 */
export function isWrongBlock(reply: RpcReply, asked: AskedBlock, read: ReadBlock): boolean {
  if (!reply.ok || reply.result === 'null') return false
  const block = read(reply.result)
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
