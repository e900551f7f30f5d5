// Identifies a node of any family for `init` and `doctor`, without the pool: one request per node, each with a
// time limit.

import type { NodeAddress, NodeKind } from './rpc.ts'
import { openRpc } from './rpc.ts'

/** What a node says of itself. */
export type NodeAnswer = {
  /** As `chain_id` of the configuration; TON's API does not report it. */
  chain_id?: number | string
  /** What it calls its chain. */
  chain_name?: string
  /** Its newest block (Polkadot: the newest final one). */
  head: number
}

const patienceMs = 10_000

/** Asks a node, in its own protocol, which chain it is on and how far it has got. */
export async function askNode(address: NodeAddress): Promise<NodeAnswer> {
  try {
    return await asks[address.kind](address, AbortSignal.timeout(patienceMs))
  } catch (error) {
    throw new Error(reasonOf(error), { cause: error })
  }
}

type Ask = (address: NodeAddress, signal: AbortSignal) => Promise<NodeAnswer>

const asks: Readonly<Record<NodeKind, Ask>> = {
  evm: async (address, signal) => {
    await using rpc = await openRpc(address, signal)
    const chain_id = await rpc.call('eth_chainId', [])
    const head = await rpc.call('eth_blockNumber', [])
    if (!isQuantity(chain_id) || !isQuantity(head)) throw new Error('it is no EVM node')
    return { chain_id: Number(chain_id), head: Number(head) }
  },
  ton: async (address, signal) => {
    const node = await openTonNode(address)
    try {
      const info = await node.call('getMasterchainInfo', {}, signal)
      const { last } = (info ?? {}) as { last?: { seqno?: unknown } }
      if (typeof last?.seqno !== 'number') throw new Error('it does not report its masterchain')
      return { head: last.seqno }
    } finally {
      await node.stop()
    }
  },
  sui: async ({ url, headers = {}, transport = 'grpc' }, signal) => {
    const [{ createSuiClient }, { fromBase58 }] = await Promise.all([
      import('../../chains/sui/client.ts'),
      import('@mysten/sui/utils'),
    ])
    const node = createSuiClient({ url, headers, transport })
    try {
      const { chainId, height } = await node.info(signal)
      if (!chainId) throw new Error('it does not report its chain')
      return { chain_id: Buffer.from(fromBase58(chainId)).toString('hex', 0, 4), head: height }
    } finally {
      node.close()
    }
  },
  polkadot: async (address, signal) => {
    await using rpc = await openRpc(address, signal)
    const genesis = await rpc.call('chain_getBlockHash', [0])
    const chain_name = await rpc.call('system_chain', [])
    const finalized = await rpc.call('chain_getFinalizedHead', [])
    const header = (await rpc.call('chain_getHeader', [finalized])) as { number?: unknown } | null
    if (
      typeof genesis !== 'string' ||
      typeof chain_name !== 'string' ||
      !isQuantity(header?.number)
    )
      throw new Error('it is no Polkadot node')
    return { chain_id: genesis, chain_name, head: Number(header?.number) }
  },
}

async function openTonNode({ url, headers, key }: NodeAddress) {
  const { createToncenter, faultOfText } = await import('../../chains/ton/toncenter.ts')
  if (key === undefined)
    return createToncenter({ url, ...(headers && { headers }) }, { now: Date.now })
  const [{ createLiteServer }, { createVerificationCounts }] = await Promise.all([
    import('../../chains/ton/lite/liteserver.ts'),
    import('../../chains/verification.ts'),
  ])
  const { hostname: host, port } = new URL(url)
  return createLiteServer(
    { host, port: Number(port), key: Buffer.from(key, 'base64') },
    {
      faultOf: (text) => faultOfText(text, 'failed'),
      counts: createVerificationCounts('structural'),
    },
  )
}

const isQuantity = (value: unknown): boolean =>
  typeof value === 'string' && /^0x[0-9a-f]+$/i.test(value)

function reasonOf(error: unknown): string {
  const { name, message, code, cause } = error as Error & { code?: string }
  if (name === 'TimeoutError' || name === 'AbortError' || code === 'CANCELLED')
    return `no answer within ${patienceMs / 1000} s`
  return cause instanceof Error ? reasonOf(cause) : message || String(code)
}
