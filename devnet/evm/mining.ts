import { setTimeout as delay } from 'node:timers/promises'

type Call = <result = unknown>(method: string, params?: unknown[]) => Promise<result>

/** Makes a block at once when a transaction comes, and every few seconds anyhow. */
export type Mining = {
  /** Does something during which no block is made. */
  aside(task: () => Promise<unknown>): Promise<void>
  stop(): Promise<void>
}

/**
 * Makes the blocks of an anvil that makes none by itself. Its own miner cannot be made to wait: blocks
 * that are rolled back while it works on another one leave a hole in its chain permanently.
 */
export async function startMining(anvil: {
  call: Call
  wsUrl: string
  blockTimeMs: number
}): Promise<Mining> {
  const { call, wsUrl, blockTimeMs } = anvil
  const stopped = new AbortController()
  let turn: Promise<unknown> = Promise.resolve()
  const inTurn = async (task: () => Promise<unknown>): Promise<void> => {
    const done = turn.then(task)
    turn = done.catch(() => {})
    await done
  }
  // A node that is unreachable or busy: the next turn retries.
  const mine = () => inTurn(() => call('evm_mine')).catch(() => {})

  let isAsked = false
  const mineWhatWaits = () => {
    if (isAsked) return
    isAsked = true
    void inTurn(async () => {
      isAsked = false
      const { pending } = await call<{ pending: string }>('txpool_status')
      if (Number(pending) > 0) await call('evm_mine')
    }).catch(() => {})
  }
  const socket = await listen(wsUrl, mineWhatWaits)

  const run = async () => {
    for (;;) {
      await delay(blockTimeMs, undefined, { signal: stopped.signal })
      await mine()
    }
  }
  const running = run().catch(() => {})

  return {
    aside: inTurn,
    stop: async () => {
      stopped.abort()
      socket.close()
      await running
      await turn
    },
  }
}

/** Called for every transaction that enters the pool, from the answer on. */
async function listen(wsUrl: string, onTransaction: () => void): Promise<WebSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const socket = new WebSocket(wsUrl)
  const subscribe = { jsonrpc: '2.0', id: 1, method: 'eth_subscribe' }
  socket.onopen = () =>
    socket.send(JSON.stringify({ ...subscribe, params: ['newPendingTransactions'] }))
  socket.onmessage = ({ data }) => {
    if (JSON.parse(String(data)).id === 1) resolve()
    else onTransaction()
  }
  socket.onerror = () => reject(new Error('the local chain has no WebSocket'))
  await promise
  return socket
}
