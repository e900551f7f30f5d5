import { createBloomCheck, isBloom, isEmptyBloom } from '../../chains/evm/codec/bloom.ts'
import type { Pool, RpcReply } from '../../chains/evm/pool/pool-types.ts'
import type { Log } from '../../lib/log.ts'
import { type FeedBlock, type FeedLog, readBlock, readLogs } from './feed-block.ts'

/** Where the feed gets blocks and logs from; what it delivers is verified. */
export type FeedSource = {
  /** Undefined when no node has it now. */
  block(hash: string, minBlock?: number): Promise<FeedBlock | undefined>
  /** Undefined when no node has them now. */
  logs(block: FeedBlock, attempt: number): Promise<readonly FeedLog[] | undefined>
}

/** Attempts after which a bloom that fits no answer is the header's fault and not the nodes'. */
const patience = 8

/** Makes the source on a pool: every answer may come from another node. */
export function createFeedSource(options: {
  pool: Pool
  prefix: string
  log: Log
  timeoutMs?: number
}): FeedSource {
  const { pool, prefix, log, timeoutMs = 5_000 } = options
  const { fits, covers } = createBloomCheck()
  // Some chains leave all blooms empty: a bloom is used only after earlier ones matched their logs.
  let areBloomsRight = false
  // Some leave the logs of the block itself out (Bor: state sync): then logs may be more, never less.
  let areBloomsPartial = false
  let hasWarned = false

  const ask = (
    method: string,
    params: string,
    minBlock: number | undefined,
    isUseless: (reply: RpcReply) => boolean,
  ) =>
    pool.request({
      method: `${prefix}_${method}`,
      params,
      idempotent: true,
      timeoutMs,
      isUseless,
      ...(minBlock !== undefined && { minBlock }),
    })

  return {
    async block(hash, minBlock) {
      let block: FeedBlock | undefined
      await ask('getBlockByHash', `["${hash}",false]`, minBlock, (reply) => {
        block = readBlock(reply, hash)
        return block === undefined
      })
      return block
    },
    async logs(block, attempt) {
      const { hash, number, bloom } = block
      // Not by the number of transactions: on some chains blocks have logs of their own.
      if (areBloomsRight && isEmptyBloom(bloom)) return []
      let logs: FeedLog[] | undefined
      let isRight = false
      await ask('getLogs', `[{"blockHash":"${hash}"}]`, number, (reply) => {
        const read = readLogs(reply, hash)
        if (!read) return true
        isRight = !isBloom(bloom) || fits(bloom, read) || (areBloomsPartial && covers(bloom, read))
        if (isRight || !logs || read.length > logs.length) logs = read
        return !isRight
      })
      if (!logs) return undefined
      if (isRight) {
        if (logs.length > 0 && !areBloomsPartial && isBloom(bloom)) areBloomsRight = true
        return logs
      }
      if (attempt < patience) return undefined
      // All nodes agree on more logs than the header knows of: those of the block itself are not in it.
      if (covers(bloom, logs)) {
        areBloomsPartial = true
        areBloomsRight = false
      }
      if (!hasWarned) log.warn({ number, hash }, 'header blooms do not match the logs')
      hasWarned = true
      return logs
    },
  }
}
