import { UnreadableError } from '../chain.ts'
import { toHex } from '../hex.ts'
import { NodeFault } from '../nodes/fault.ts'
import type { Tokens } from '../tokens.ts'
import { coinTypeOf } from './checkpoint.ts'
import { type CoinInfo, statusOf } from './client.ts'
import { suiFamily } from './family.ts'
import type { SuiNode, SuiNodes } from './nodes.ts'
import { suiType } from './records.ts'

const noInfo = { name: null, symbol: null, decimals: null }

/**
 * What a node says of a coin type. Anyone can publish one: where a node fails for it and answers for the native coin, that does
 * not count against the node.
 */
async function infoOf(
  { client }: SuiNode,
  coinType: string,
  signal: AbortSignal,
): Promise<CoinInfo | undefined> {
  try {
    return await client.coinInfo(coinType, signal)
  } catch (error) {
    signal.throwIfAborted()
    if (statusOf(error) === 'RESOURCE_EXHAUSTED') throw error
    await client.coinInfo(suiType, signal)
    throw new NodeFault('refused', error instanceof Error ? error.message : String(error))
  }
}

const undescribed = (error: unknown) => {
  if (!(error instanceof UnreadableError)) throw error
  const detail = 'No node can describe this coin type.'
  return { ok: false as const, field: 'token_address', detail }
}

/** Finds a coin type. One without a description counts as one when the address holds it. */
export const createResolveImport =
  (nodes: SuiNodes): NonNullable<Tokens['resolveImport']> =>
  async ({ address, token_address }, signal) => {
    if (!address) return { ok: false, field: 'address', detail: 'Is required.' }
    const asset = { ...suiFamily.native, contract_address: token_address ?? Buffer.alloc(0) }
    const coinType = coinTypeOf(asset)
    const info = await nodes
      .ask({ full: true }, signal, async (node, limited) => {
        const known = await infoOf(node, coinType, limited)
        if (known) return known
        const { balance: held } = await node.client.balance(toHex(address), coinType, limited)
        return held > 0n ? noInfo : undefined
      })
      .catch(undescribed)
    if (info && 'ok' in info) return info
    if (!info)
      return { ok: false, field: 'token_address', detail: 'The chain knows no such coin type.' }
    return { ok: true, address, asset, token_account_address: Buffer.alloc(0), info }
  }

/** Proves that a coin type is there by its description; without an address there is no other proof. */
export const createVerifyToken =
  (nodes: SuiNodes): NonNullable<Tokens['verifyToken']> =>
  async ({ token_address }, signal) => {
    const asset = { ...suiFamily.native, contract_address: token_address }
    const info = await nodes
      .ask({ full: true }, signal, (node, limited) => infoOf(node, coinTypeOf(asset), limited))
      .catch(undescribed)
    if (info && 'ok' in info) return info
    return info
      ? { ok: true, asset, info }
      : {
          ok: false,
          field: 'token_address',
          detail: 'The chain knows no such coin type, or it has no description.',
        }
  }
