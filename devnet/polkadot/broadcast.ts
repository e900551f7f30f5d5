import type { PolkadotChain } from './chain.ts'
import { bytesParam, textParam } from './params.ts'
import { RpcError, type Session } from './rpc.ts'

// As many as every node must allow.
const most = 4

/**
 * The group transaction_v1 for one connection: a transaction is offered to the pool again whenever
 * the best block changes, until its client has seen enough. So one that a fork threw out comes back.
 */
export function createBroadcast(chain: PolkadotChain): Session {
  const running = new Map<string, () => void>()
  let count = 0
  return {
    methods: {
      transaction_v1_broadcast: (transaction: unknown) => {
        const extrinsic = bytesParam(transaction, 'transaction')
        if (running.size >= most) return null
        const offer = () => {
          try {
            chain.pool.submit(extrinsic)
          } catch {
            // Its client gets no error: it may become valid later, or already exists.
          }
        }
        const id = `broadcast-${++count}`
        running.set(
          id,
          chain.subscribe(({ kind }) => {
            if (kind === 'best') offer()
          }),
        )
        offer()
        return id
      },
      transaction_v1_stop: (operation: unknown) => {
        const id = textParam(operation, 'operationId')
        const stop = running.get(id)
        if (!stop) throw new RpcError(-32_602, `Invalid params: ${id} is not being broadcast`)
        running.delete(id)
        stop()
      },
    },
    close: () => {
      for (const stop of running.values()) stop()
      running.clear()
    },
  }
}
