import type { GrpcTypes } from '@mysten/sui/grpc'

/** What goes wrong at one endpoint; a test changes it while it runs. */
export type Faults = {
  /** `down` closes every connection, `hanging` takes requests and never answers them. */
  mode: 'up' | 'down' | 'hanging'
  /** Streams stay open and say nothing more. */
  stalled: boolean
  /** How many of the newest checkpoints this endpoint does not know of. */
  lag: number
  /** Checkpoints below this number are gone here. */
  lowest: number
  /** Answers UNIMPLEMENTED to the list methods, as nodes of before July 2026. */
  withoutLists: boolean
  /** No balances, objects or subscriptions: the archival service. */
  archive: boolean
  /**
   * A load balancer: balance requests go in turn to machines that are so many checkpoints behind. Each
   * machine reports its own height in its response headers. Empty is one machine.
   */
  staleBalances: readonly number[]
  /** The balance index is so many checkpoints behind. Headers report the executed height; streams wait for the index. */
  indexLag: number
  /** `ListCheckpoints` ends with DEADLINE_EXCEEDED after so many checkpoints. */
  listDeadline: number | undefined
  /** Balances hold what is not in a checkpoint yet. */
  eagerBalances: boolean
  /** Coin types for which balances and descriptions are answered with INTERNAL. */
  brokenCoins: readonly string[]
  /** Answers with this gRPC status to everything but the service info. */
  status: number | undefined
  /** Checkpoints come without a digest that could be one. */
  garbled: boolean
  /** Changes checkpoints before they are sent: a node that lies. */
  tamper: ((checkpoint: GrpcTypes.Checkpoint) => GrpcTypes.Checkpoint) | undefined
  /** Changes objects before they are sent. */
  tamperObject: ((object: GrpcTypes.Object) => GrpcTypes.Object) | undefined
  /** Has no objects of checkpoints any more. */
  withoutObjects: boolean
  /** Names other validators than those who sign. */
  falseCommittee: boolean
  /** Requests without this header are refused. */
  token: string | undefined
  /** Requests without this path in front of the method are refused. */
  path: string | undefined
}

/** An endpoint that works. */
export const noFaults = (): Faults => ({
  mode: 'up',
  stalled: false,
  lag: 0,
  lowest: 0,
  withoutLists: false,
  archive: false,
  staleBalances: [],
  indexLag: 0,
  listDeadline: undefined,
  eagerBalances: false,
  brokenCoins: [],
  status: undefined,
  garbled: false,
  tamper: undefined,
  tamperObject: undefined,
  withoutObjects: false,
  falseCommittee: false,
  token: undefined,
  path: undefined,
})
