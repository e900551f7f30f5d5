import type { Clock } from '../../../lib/clock.ts'
import type { Pool } from './pool-types.ts'

/** As much of a pool of nodes as a chain needs. */
export type EvmNodes = Pick<
  Pool,
  'request' | 'broadcast' | 'head' | 'onHead' | 'can' | 'has' | 'chainId' | 'status'
>

const longestMs = 3_000
const stepMs = 25

/**
 * Waits a little until it is known what the nodes can do. A node that was not asked yet looks as one
 * that cannot trace, and the first blocks would lack what moved inside calls.
 */
export function createExplored({ pool, clock }: { pool: EvmNodes; clock: Clock }) {
  let isOver = false
  const isKnown = () =>
    pool
      .status()
      .every(
        ({ state, capabilities }) =>
          state !== 'starting' && (state !== 'healthy' || capabilities.length > 0),
      )
  return async (signal: AbortSignal): Promise<void> => {
    const end = clock.now() + longestMs
    while (!isOver && !isKnown() && clock.now() < end) await clock.sleep(stepMs, signal)
    isOver = true
  }
}

/** A node that has not reached the block would only say that it does not know it. */
export const reached = (pool: EvmNodes, number: number): { minBlock?: number } => {
  const best = pool.head()?.number
  return best === undefined ? {} : { minBlock: Math.min(number, best) }
}

/**
 * What nodes say of a state or of history that they have discarded, as their sources have it. Words
 * such as `not found` or `unavailable` alone are not enough: a node that lags, starts or is overloaded
 * says those as well, and what it means is there a moment later.
 */
const prunedTexts: readonly RegExp[] = [
  // ethereum/go-ethereum, trie/errors.go (MissingNodeError); also bor, bsc, op-geth, coreth
  /^missing trie node/i,
  // ethereum/go-ethereum, eth/state_accessor.go: "required historical state unavailable (reexec=%d)"
  /required historical state unavailable/i,
  // ethereum/go-ethereum, core/state/database_history.go and triedb/pathdb/reader.go:
  // "historical state %x is not available", "state %#x is not available"
  /^(?:historical )?state (?:\S+ )?is not available/i,
  /state history .{0,200}(?:pruned|truncated|not available)/i,
  // EIP-4444, code 4444: ethereum/go-ethereum (history.PrunedHistoryError), Nethermind, and besu-eth/besu,
  // RpcErrorType.PRUNED_HISTORY_UNAVAILABLE
  /pruned history unavailable/i,
  // erigontech/erigon, execution/state/history_reader_v3.go (PrunedError)
  /old data not available due to pruning/i,
  // NethermindEth/nethermind, DebugRpcModule and TraceRpcModule (GetStateFailureResult, -32002), and
  // RegeneratingReceiptFinder (-32001, before that -32602)
  /no state available for block/i,
  /neither stored nor reproducible from state history/i,
  // paradigmxyz/reth, crates/storage/errors/src/provider.rs (StateAtBlockPruned) and
  // EthApiError::ExceedsMaxProofWindow
  /state at block #?\d+ is pruned/i,
  /exceeds maximum proof window/i,
  // besu-eth/besu, RpcErrorType.WORLD_STATE_UNAVAILABLE (-32000)
  /^world state unavailable/i,
]

// A service in front of nodes may wrap their words in its own.
const passing = /temporar|try again|retry|timed? ?out|overload|syncing/i

/** Whether a node's error says that a moment later the same may be answered. */
export const isPassing = ({ message }: { message: string }): boolean => passing.test(message)

/** Whether an error says that what was asked for has been pruned, by every node that was asked. */
export const isPruned = ({
  code,
  message,
  isDisputed,
}: {
  code: number
  message: string
  isDisputed?: boolean
}): boolean =>
  isDisputed !== true &&
  (code === 4444 || (!passing.test(message) && prunedTexts.some((text) => text.test(message))))
