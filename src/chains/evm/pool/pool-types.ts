import type { NodeStatus } from '../../nodes/status.ts'

/**
 * Raw JSON text with one character per byte (latin1): it goes from socket to socket without being
 * decoded, so that not one byte of an answer changes.
 */
export type RawJson = string

/** What a node answered: the text of `result` or of `error`, as it was sent. */
export type RpcReply = { ok: true; result: RawJson } | { ok: false; error: RawJson }

/** What only some nodes can do; probed, never assumed. */
export type Capability =
  | 'archive'
  | 'block_receipts'
  | 'debug_trace'
  | 'parity_trace'
  | 'txpool'
  | 'subscriptions'

/** A block that an upstream has announced. */
export type Head = { number: number; hash: string; parent_hash: string; timestamp: number }

/** One call to be made by whichever upstream is best for it. */
export type PoolRequest = {
  /** With the prefix of the chain: `eth_getBalance`. */
  method: string
  /** The text of the params array. */
  params: RawJson
  /** Only upstreams that have reached this block are asked. */
  minBlock?: number | undefined
  needs?: Capability | undefined
  /** Whether it may be sent a second time: hedged, or repeated elsewhere after a failure. */
  idempotent: boolean
  timeoutMs?: number
  /**
   * Strings of the answer that have more bytes are replaced by `"~"` while it is read and do not count
   * towards its largest size.
   */
  longestString?: number
  /**
   * Whether an answer proves that this upstream cannot serve it though another might (a null for a
   * block that must exist, pruned state …): then the next upstream is asked.
   */
  isUseless?: ((reply: RpcReply, upstream: string) => boolean) | undefined
  /** Names of upstreams that are not asked, for a second opinion. */
  avoid?: readonly string[]
  /** Whether a text is one JSON value, for a caller that parses the answer anyway: then it is not scanned as well. */
  isWhole?: ((result: RawJson) => boolean) | undefined
  /** Whether an answer cannot be true: it is never given on, and counts as a failure of the upstream. */
  isWrong?: ((reply: RpcReply) => boolean) | undefined
  signal?: AbortSignal
}

/** Why no upstream answered. */
export type PoolFailure = 'NO_UPSTREAM' | 'TIMEOUT' | 'REPLY_TOO_LARGE' | 'ABORTED'

/** How a call ended. */
export type PoolOutcome =
  | RpcReply
  /** One node has discarded it, and another one that was asked has failed or said something else. */
  | (Extract<RpcReply, { ok: false }> & { isDisputed: true })
  | { failure: PoolFailure }

/**
 * How sending a transaction to all nodes ended. Where none has taken it, `asked` is how many of them
 * may have got it, and `errors` is what those said that answered: only when all of them did, and
 * each error is a refusal, is it certain that the transaction is nowhere.
 */
export type BroadcastOutcome = PoolOutcome & { asked?: number; errors?: readonly RawJson[] }

/** The upstreams of one network, behind one door. */
export type Pool = {
  /** Makes a call. The callback is called exactly once, never synchronously. */
  send(request: PoolRequest, done: (outcome: PoolOutcome) => void): void
  /** The same as a promise, for callers that are not on the gateway's hot path. */
  request(request: PoolRequest): Promise<PoolOutcome>
  /** Sends a signed transaction to every healthy upstream; succeeds when one accepts or knows it. */
  broadcast(rawTransaction: RawJson, timeoutMs?: number): Promise<BroadcastOutcome>
  /** The pinned chain id; undefined until an upstream has reported it. */
  chainId(): number | undefined
  /** The highest of the last heads of the nodes: a fact about them. Which head counts is decided by `canonical`. */
  head(): Head | undefined
  /** Whether any usable upstream has this capability. */
  can(capability: Capability): boolean
  /** Whether any upstream has it, be it away now; undefined while one that is there was not asked. */
  has(capability: Capability): boolean | undefined
  /** Probes every node now; resolves when each probe that begins after the call has ended. */
  look(): Promise<void>
  /** Called with every new head of any upstream, duplicates left out; returns the unsubscriber. */
  onHead(listener: (head: Head, upstream: string) => void): () => void
  /**
   * Called with the hash of every transaction that an upstream announces, once for each upstream; they
   * are polled for it only while there are listeners. Returns the unsubscriber.
   */
  onPending(listener: (hash: string) => void): () => void
  /** All that can be asked have been asked to announce them; never waits for long. */
  pendingBegun(): Promise<void>
  /** The names of those that announce them now. */
  pendingSources(): string[]
  status(): NodeStatus[]
  stop(): Promise<void>
}
