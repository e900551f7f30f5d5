import { createHash } from 'node:crypto'
import type { Cell } from '@ton/core'
import type { AssetKey } from '../../contract/records/assets.ts'
import type { Parsed } from '../chain.ts'
import { cleanText, readDecimals } from '../token-text.ts'
import type { TokenInfo, Tokens } from '../tokens.ts'
import { formatAddress } from './address.ts'
import { readSnake } from './cells.ts'
import { findByKey } from './dictionary.ts'
import { type GetMethods, readAddressItem, type StackItem, writeAddress } from './get-methods.ts'

// What a wallet can show; contracts can store texts of any length.
const longestText = 200
const usualDecimals = 9

type Resolve = NonNullable<Tokens['resolveImport']>

/**
 * Finds the jetton wallet of an owner and proves by the master that it is theirs: what a jetton
 * wallet says of itself is worth nothing.
 */
export function createResolveImport({
  methods,
  parseAddress,
}: {
  methods: Pick<GetMethods, 'run'>
  parseAddress(text: string): Parsed
}): Resolve {
  const refuse = (field: string, detail: string) => ({ ok: false as const, field, detail })

  return async (request, signal) => {
    const { asset_type, token_account_address } = request
    let { address, token_address } = request
    let account: Buffer | undefined
    if (token_account_address !== undefined) {
      const parsed = parseAddress(token_account_address)
      if (!parsed.ok) return refuse('token_account_address', parsed.detail)
      account = parsed.bytes
      const data = await methods.run(account, 'get_wallet_data', [], { signal })
      const [owner, master] = [readAddressItem(data?.[1]), readAddressItem(data?.[2])]
      if (data && owner && master) {
        if (address && !owner.equals(address))
          return refuse('token_account_address', `Belongs to ${formatAddress(owner)}.`)
        if (token_address && !master.equals(token_address))
          return refuse('token_account_address', `Is of the token ${formatAddress(master)}.`)
        address ??= owner
        token_address ??= master
      } else if (!address || !token_address)
        return refuse(
          'token_account_address',
          'Is not a jetton wallet yet; give address and token_address.',
        )
    }
    if (!address) return refuse('address', 'Is required with token_address.')
    if (!token_address) return refuse('token_address', 'Is required.')
    // The master is asked in any case: only its answer proves the jetton wallet.
    const found = await methods.run(token_address, 'get_wallet_address', [writeAddress(address)], {
      signal,
    })
    const derived = readAddressItem(found?.[0])
    if (!derived) return refuse('token_address', 'Is not a jetton master.')
    if (account && !account.equals(derived))
      return refuse(
        'token_account_address',
        `The jetton wallet of this address is ${formatAddress(derived)}.`,
      )
    if (!account) {
      // A master can name any account: one that is of another token would be counted twice.
      const held = await methods.run(derived, 'get_wallet_data', [], { signal })
      const [owner, master] = [readAddressItem(held?.[1]), readAddressItem(held?.[2])]
      const says = 'The jetton wallet that it names'
      if (owner && !owner.equals(address))
        return refuse('token_address', `${says} belongs to ${formatAddress(owner)}.`)
      if (master && !master.equals(token_address))
        return refuse('token_address', `${says} is of the token ${formatAddress(master)}.`)
    }
    const data = await methods.run(token_address, 'get_jetton_data', [], { signal })
    if (!data) return refuse('token_address', 'Is not a jetton master.')
    const asset: AssetKey = { asset_type, contract_address: token_address, token_id: 0n }
    return {
      ok: true,
      address,
      asset,
      token_account_address: derived,
      info: readMetadata(data[3]),
    }
  }
}

/** Proves that a contract is a jetton master. */
export const createVerifyToken =
  ({ methods }: { methods: Pick<GetMethods, 'run'> }): NonNullable<Tokens['verifyToken']> =>
  async ({ asset_type, token_address }, signal) => {
    const data = await methods.run(token_address, 'get_jetton_data', [], { signal })
    // Supply, whether it can be minted, admin, content, code of the wallets (TEP-74).
    if (!data || data.length < 5 || typeof data[0] !== 'bigint' || data[4] === undefined)
      return { ok: false, field: 'token_address', detail: 'Is not a jetton master.' }
    const asset: AssetKey = { asset_type, contract_address: token_address, token_id: 0n }
    return { ok: true, asset, info: readMetadata(data[3]) }
  }

const keyOf = (name: string): Buffer => createHash('sha256').update(name).digest()

/** What stands on the chain itself (TEP-64). Addresses elsewhere are not followed from here. */
export function readMetadata(content: StackItem): TokenInfo {
  const none: TokenInfo = { name: null, symbol: null, decimals: usualDecimals }
  if (content === undefined || typeof content === 'bigint') return none
  try {
    const slice = content.beginParse()
    if (slice.remainingBits < 8 || slice.loadUint(8) !== 0) return none
    const texts = slice.loadMaybeRef()
    const find = (name: string) => (texts ? findByKey(texts, keyOf(name)) : undefined)
    const decimals = find('decimals')
    return {
      name: readText(find('name')),
      symbol: readText(find('symbol')),
      decimals: decimals ? readNumber(readText(decimals)) : usualDecimals,
    }
  } catch {
    return none
  }
}

/** Not by `Number` alone, for which a text without digits is 0. */
const readNumber = (text: string | null): number | null =>
  text !== null && /^\d{1,9}$/.test(text) ? readDecimals(Number(text)) : null

function readText(cell: Cell | undefined): string | null {
  if (!cell) return null
  let slice = cell.beginParse()
  // Some put the text into a cell of its own.
  if (slice.remainingBits === 0 && slice.remainingRefs === 1) slice = slice.loadRef().beginParse()
  if (slice.remainingBits < 8 || slice.loadUint(8) !== 0) return null
  const text = readSnake(slice)?.text
  // Cut first: a half of a sign at the end is replaced.
  return text === undefined ? null : cleanText(text.slice(0, longestText)) || null
}
