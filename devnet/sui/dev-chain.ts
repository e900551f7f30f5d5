import { normalizeSuiAddress } from '@mysten/sui/utils'
import type { DevChain, DevChainOptions } from '../dev-chain.ts'
import { devCoin } from './accounts.ts'
import { type SuiNode, startSuiNode } from './node.ts'

/** A local Sui chain: a simulator that runs coin transactions and has no Move VM. */
export type SuiDevChain = DevChain & {
  simulator: true
  /** The digest of the first checkpoint. */
  chain_id: string
  /** A coin type beside the native coin, which the faucet holds too. */
  coin_type: string
  node: SuiNode
}

const usualBlockTimeMs = 250

/** Starts the chain; it makes a checkpoint four times a second, as the real one does. */
export async function startSuiDevChain(options: DevChainOptions = {}): Promise<SuiDevChain> {
  const node = await startSuiNode({ blockTimeMs: usualBlockTimeMs, ...options })
  const treasury = node.key(0)
  // A client that signs with the faucet's key must be the only user of its coins.
  const faucet = node.key(1)
  return {
    simulator: true,
    node,
    node_url: node.url,
    chain_id: node.ledger.chainId,
    coin_type: devCoin,
    faucet_address: faucet.toSuiAddress(),
    faucet_key: faucet.getSecretKey(),
    fund: async (address, amount, signal) => {
      signal?.throwIfAborted()
      return await node.pay(treasury, normalizeSuiAddress(address), amount)
    },
    stop: node.stop,
  }
}
