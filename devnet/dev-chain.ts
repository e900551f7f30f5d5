/** A local chain for development, as the embedded mode and the tests drive it. */
export type DevChain = {
  /** The node's own endpoint, as an upstream of the configuration names it. */
  node_url: string
  /** Where the node has one beside it (anvil). */
  node_ws_url?: string
  /** A well-funded account, and its key where a script can sign with it. */
  faucet_address: string
  faucet_key?: string
  /** Sends native coin from the faucet; the transaction's identifier as the variant prints it. */
  fund(address: string, amount: bigint, signal?: AbortSignal): Promise<string>
  /** Makes blocks now, where the chain can; others make them by themselves. */
  mineBlocks?(blocks: number): Promise<void>
  /** Ends the node; everything that clients saw is on disk. */
  stop(): Promise<void>
}

/** How a local chain is started. */
export type DevChainOptions = {
  /** 0 takes a free one. */
  port?: number
  /** The folder of its state; without one the chain is gone when it stops. */
  directory?: string
  /** The same seed gives the same accounts and the same genesis. */
  seed?: number
  /** Milliseconds between blocks. */
  blockTimeMs?: number
}
