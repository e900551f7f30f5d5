import { type Anvil, type AnvilOptions, startAnvil } from '../../devnet/anvil/anvil.ts'
import { freePort } from './free-port.ts'

/** Several anvils that are nodes of one chain. */
export type TestChain = {
  nodes: Anvil[]
  /**
   * Mines on all nodes, or on some. A block depends on its height and transactions only, so nodes
   * at one height have one history.
   */
  mine(blocks?: number, on?: Anvil[]): Promise<void>
  height(node: Anvil): Promise<number>
  /** Gives one node the blocks and the state of another, of its head only or of all its blocks. */
  copy(from: Anvil, to: Anvil, options?: { withHistory?: boolean }): Promise<void>
  /** Starts a node again at its old address, with the history of another. */
  restart(index: number, from?: Anvil): Promise<Anvil>
  stop(): Promise<void>
}

const genesisTime = 1_700_000_000

/** Starts anvils with the same genesis that mine only on command. */
export async function startChain(count: number, options: AnvilOptions = {}): Promise<TestChain> {
  const start = async (port: number) => {
    const node = await startAnvil({
      ...options,
      port,
      timestamp: genesisTime,
      args: ['--no-mining', ...(options.args ?? [])],
    })
    // Otherwise the time of a block depends on when it is mined.
    await node.call('anvil_setBlockTimestampInterval', [1])
    return node
  }
  const nodes = await Promise.all(
    Array.from({ length: count }, async () => start(await freePort())),
  )
  const height = async (node: Anvil) => Number(await node.call('eth_blockNumber'))
  const copy = async (from: Anvil, to: Anvil, { withHistory = true } = {}) => {
    await to.call('anvil_loadState', [await from.call('anvil_dumpState', [withHistory])])
    // A loaded state does not bring the time of its last block with it.
    await to.call('evm_setNextBlockTimestamp', [genesisTime + (await height(to)) + 1])
  }
  return {
    nodes,
    mine: async (blocks = 1, on = nodes) => {
      await Promise.all(on.map((node) => node.call('anvil_mine', [`0x${blocks.toString(16)}`])))
    },
    height,
    copy,
    restart: async (index, from) => {
      const old = nodes[index]!
      await old.kill()
      const node = await start(old.port)
      if (from) await copy(from, node)
      nodes[index] = node
      return node
    },
    stop: async () => {
      await Promise.all(nodes.map((node) => node.kill()))
    },
  }
}
