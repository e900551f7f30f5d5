import type { DevChain } from './dev-chain.ts'
import type { DevTag } from './keeper-messages.ts'

/** How each local chain is started. What it needs is loaded only then. */
export const devChains: Readonly<Record<DevTag, (directory: string) => Promise<DevChain>>> = {
  c: async (directory) => {
    const { startEvmDevChain } = await import('./evm/dev-chain.ts')
    return await startEvmDevChain({ directory })
  },
  q: async (directory) => {
    const { startEvmDevChain } = await import('./evm/dev-chain.ts')
    return await startEvmDevChain({ directory, chainId: 901, isRollup: true })
  },
  t: async (directory) => {
    const { startTonDevChain } = await import('./ton/ton-dev-chain.ts')
    return await startTonDevChain({ directory })
  },
  s: async (directory) => {
    const { startSuiDevChain } = await import('./sui/dev-chain.ts')
    return await startSuiDevChain({ directory })
  },
  p: async (directory) => {
    const { startPolkadotDevChain } = await import('./polkadot/node.ts')
    return await startPolkadotDevChain({ directory })
  },
}
