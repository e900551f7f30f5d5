import type { DevChain } from './dev-chain.ts'
import type { DevTag } from './keeper-messages.ts'

/** Where a chain keeps its state, and the port of its node where that has to be the same as before. */
type Place = { directory: string; port?: number }

/** How each local chain is started. What it needs is loaded only then. */
export const devChains: Readonly<Record<DevTag, (place: Place) => Promise<DevChain>>> = {
  c: async (place) => {
    const { startEvmDevChain } = await import('./evm/dev-chain.ts')
    return await startEvmDevChain(place)
  },
  q: async (place) => {
    const { startEvmDevChain } = await import('./evm/dev-chain.ts')
    return await startEvmDevChain({ ...place, chainId: 901, isRollup: true })
  },
  t: async (place) => {
    const { startTonDevChain } = await import('./ton/ton-dev-chain.ts')
    return await startTonDevChain(place)
  },
  s: async (place) => {
    const { startSuiDevChain } = await import('./sui/dev-chain.ts')
    return await startSuiDevChain(place)
  },
  p: async (place) => {
    const { startPolkadotDevChain } = await import('./polkadot/node.ts')
    return await startPolkadotDevChain(place)
  },
}
