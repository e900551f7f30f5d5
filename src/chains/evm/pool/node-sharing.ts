import type { Capability, Head } from './pool-types.ts'

/** What one process has found out about a node, for the other processes of the machine. */
export type Sighting =
  | { kind: 'answered'; chainId: number; isSyncing: boolean; head: Head }
  | { kind: 'explored'; clientVersion: string; capabilities: Capability[] }
  /** Pushed by the node. */
  | { kind: 'head'; head: Head }
  | { kind: 'failed' }

/**
 * Other processes of the machine that use the same nodes of a network. One of them probes and subscribes, and passes on
 * what it sees, so that a node gets as many probes as from a single process.
 */
export type NodeSharing = {
  /** Whether another process probes the nodes. */
  isFollowing(): boolean
  /** Passes on what was seen of a node, which is named by its settings. */
  publish(node: string, sighting: Sighting): void
  /** Returns the unsubscriber. */
  listen(listener: {
    seen(node: string, sighting: Sighting): void
    /** This process probes from now on. */
    lead(): void
  }): () => void
}
