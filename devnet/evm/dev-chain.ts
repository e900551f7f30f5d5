import { mkdir } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { startAnvil } from '../anvil/anvil.ts'
import type { DevChain, DevChainOptions } from '../dev-chain.ts'
import { endLeftover, noteProcess } from '../leftover.ts'
import { startMining } from './mining.ts'
import { newGenesisTime, openStateFile } from './state-file.ts'

/** A local EVM chain: a plain anvil, with what the embedded mode does to it. */
export type EvmDevChain = DevChain & {
  node_ws_url: string
  /** Makes a JSON-RPC call and returns its result; throws on an error. */
  call<result = unknown>(method: string, params?: unknown[]): Promise<result>
  /** Accounts that need no key here; none of them is the faucet. */
  traffic_address: string
  /** Makes the next block one of the present, where the chain's clock has fallen behind. */
  setClock(): Promise<void>
  /** Replaces the newest blocks by others without their transactions. */
  reorganize(depth: number): Promise<void>
}

// The first account of the mnemonic that every local EVM node uses: public, and worthless elsewhere.
const faucet = {
  faucet_address: '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266',
  faucet_key: '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
}

// States of older blocks are dropped: each costs up to 180 KiB, and no client reads them. As many stay
// as the deepest reorganization goes back, and a few.
const keptStates = '72'

/** Starts an anvil that mines at once when a transaction comes, and every few seconds anyhow. */
export async function startEvmDevChain(
  options: DevChainOptions & { chainId?: number; isRollup?: boolean } = {},
): Promise<EvmDevChain> {
  const { port, directory, blockTimeMs = 3_000, chainId, isRollup = false } = options
  if (directory !== undefined) {
    await mkdir(directory, { recursive: true })
    await endLeftover(directory, 'anvil')
  }
  const state = directory === undefined ? undefined : await openStateFile(directory)
  const anvil = await startAnvil({
    timestamp: state?.timestamp ?? newGenesisTime(),
    ...(port !== undefined && { port }),
    ...(chainId !== undefined && { chainId }),
    isDetached: true,
    args: [
      '--no-mining',
      ...['--prune-history', keptStates],
      ...(isRollup ? ['--network', 'optimism'] : []),
      ...(state?.args ?? []),
    ],
  }).catch((error: unknown) => {
    state?.stop()
    throw error
  })
  const forget =
    directory === undefined ? undefined : await noteProcess(directory, 'anvil', anvil.pid)
  const accounts = await anvil.call<string[]>('eth_accounts')
  const [treasury, traffic] = accounts.slice(-2) as [string, string]
  const setClock = async () => {
    const latest = ['latest', false]
    const block = await anvil.call<{ timestamp: string }>('eth_getBlockByNumber', latest)
    const now = Math.floor(Date.now() / 1000)
    await anvil.call('evm_setTime', [Math.max(now, Number(block.timestamp))])
  }
  // anvil continues from the time of the genesis block, whatever blocks it has loaded.
  if (state?.isStored) await setClock()
  const mining = await startMining({ ...anvil, blockTimeMs })
  return {
    node_url: anvil.url,
    node_ws_url: anvil.wsUrl,
    ...faucet,
    traffic_address: traffic,
    call: anvil.call,
    // Not from the faucet's account: a client that signs with its key counts its nonces alone.
    fund: async (address, amount) => {
      const transaction = { from: treasury, to: address, value: `0x${amount.toString(16)}` }
      for (let left = 20; ; left--)
        try {
          return await anvil.call('eth_sendTransaction', [transaction])
        } catch (error) {
          // While a block is made, anvil may give a nonce that is taken. It has accepted nothing then.
          if (left === 0 || !String(error).includes('replacement transaction')) throw error
          await delay(50)
        }
    },
    setClock,
    reorganize: (depth) =>
      mining.aside(async () => {
        await anvil.call('anvil_reorg', [depth, []])
        // It continues from the time of the block that stayed.
        await setClock()
      }),
    mineBlocks: (blocks) =>
      mining.aside(() => anvil.call('anvil_mine', [`0x${blocks.toString(16)}`])),
    stop: async () => {
      await mining.stop()
      await anvil.stop()
      await state?.keep()
      await forget?.()
    },
  }
}
