import { readFields } from '../chains/upstream/header-fields.ts'
import type { RawJson, RpcReply } from '../chains/upstream/pool-types.ts'
import { checkBlock } from '../chains/upstream/verify.ts'

/** What a block was asked for by; -1 and empty where that is not known. */
export type AskedBlock = { number: number; hash: string }

/**
 * Whether an answer cannot be the block that was asked for: it is another one, or its hash is not that
 * of its header. Headers of chains with rules of their own cannot be judged and pass.
 */
export function isWrongBlock(reply: RpcReply, asked: AskedBlock): boolean {
  if (!reply.ok || reply.result === 'null') return false
  const fields = fieldsOf(reply.result)
  if (!fields) return true
  if (asked.hash !== '' && !isSame(fields.hash, asked.hash)) return true
  if (asked.number >= 0 && Number(fields.number ?? -1) !== asked.number) return true
  return checkBlock(fields) === 'bad'
}

// Whole transactions are many times as long as all else, and nothing of them is looked at.
const longBytes = 16_384

const fieldsOf = (text: RawJson): Record<string, unknown> | undefined => {
  if (text.length > longBytes) return readFields(text)
  const value: unknown = JSON.parse(text)
  const isObject = typeof value === 'object' && !Array.isArray(value)
  return isObject ? (value as Record<string, unknown>) : undefined
}

const isSame = (hash: unknown, asked: string): boolean =>
  typeof hash === 'string' && hash.toLowerCase() === asked
