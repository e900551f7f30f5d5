import { toHex } from '../hex.ts'
import type { Tokens } from '../tokens.ts'
import { coinTypeOf } from './checkpoint.ts'
import { suiFamily } from './family.ts'
import type { SuiNodes } from './nodes.ts'

const noInfo = { name: null, symbol: null, decimals: null }

/** Finds a coin type. One without a description counts as one when the address holds it. */
export const createResolveImport =
  (nodes: SuiNodes): NonNullable<Tokens['resolveImport']> =>
  async ({ address, token_address }, signal) => {
    if (!address) return { ok: false, field: 'address', detail: 'Is required.' }
    const asset = { ...suiFamily.native, contract_address: token_address ?? Buffer.alloc(0) }
    const coinType = coinTypeOf(asset)
    const info = await nodes.ask({ full: true }, signal, async ({ client }, limited) => {
      const known = await client.coinInfo(coinType, limited)
      if (known) return known
      const { balance: held } = await client.balance(toHex(address), coinType, limited)
      return held > 0n ? noInfo : undefined
    })
    if (!info)
      return { ok: false, field: 'token_address', detail: 'The chain knows no such coin type.' }
    return { ok: true, address, asset, token_account_address: Buffer.alloc(0), info }
  }

/** Proves that a coin type is there by its description; without an address there is no other proof. */
export const createVerifyToken =
  (nodes: SuiNodes): NonNullable<Tokens['verifyToken']> =>
  async ({ token_address }, signal) => {
    const asset = { ...suiFamily.native, contract_address: token_address }
    const info = await nodes.ask({ full: true }, signal, ({ client }, limited) =>
      client.coinInfo(coinTypeOf(asset), limited),
    )
    return info
      ? { ok: true, asset, info }
      : {
          ok: false,
          field: 'token_address',
          detail: 'The chain knows no such coin type, or it has no description.',
        }
  }
