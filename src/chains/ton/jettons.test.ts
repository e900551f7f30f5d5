import { createHash } from 'node:crypto'
import { beginCell, type Cell, Dictionary } from '@ton/core'
import { describe, expect, it } from 'vitest'
import { formatAddress, parseAddress } from './address.ts'
import { type GetMethods, type StackItem, writeAddress } from './get-methods.ts'
import { createResolveImport, readMetadata } from './jettons.ts'

const account = (byte: number): Buffer => Buffer.concat([Buffer.alloc(1), Buffer.alloc(32, byte)])
const [owner, stranger, master, liar, holder] = [1, 2, 3, 4, 5].map(account) as Buffer[]

/** Contracts by what they say. The master is honest; the liar calls the same jetton wallet its own. */
const contracts = (deployed: boolean): Pick<GetMethods, 'run'> => ({
  run: async (address, method): Promise<StackItem[] | undefined> => {
    const isMaster = address.equals(master!) || address.equals(liar!)
    if (isMaster && method === 'get_wallet_address') return [writeAddress(holder!)]
    if (isMaster && method === 'get_jetton_data')
      return [1n, -1n, writeAddress(stranger!), beginCell().endCell(), beginCell().endCell()]
    if (deployed && address.equals(holder!) && method === 'get_wallet_data')
      return [7n, writeAddress(owner!), writeAddress(master!), beginCell().endCell()]
    return undefined
  },
})
const resolve = (token_address: Buffer, { address = owner!, deployed = true } = {}) =>
  createResolveImport({ methods: contracts(deployed), parseAddress })(
    { asset_type: 'ASSET_TYPE_T', address, token_address },
    new AbortController().signal,
  )

describe('the import of a jetton', () => {
  it('takes the jetton wallet that its master names, deployed or not', async () => {
    for (const deployed of [true, false])
      expect(await resolve(master!, { deployed })).toMatchObject({
        ok: true,
        address: owner,
        token_account_address: holder,
      })
  })

  it('does not take the jetton wallet of another token or of another owner', async () => {
    expect(await resolve(liar!)).toEqual({
      ok: false,
      field: 'token_address',
      detail: `The jetton wallet that it names is of the token ${formatAddress(master!)}.`,
    })
    expect(await resolve(master!, { address: stranger! })).toEqual({
      ok: false,
      field: 'token_address',
      detail: `The jetton wallet that it names belongs to ${formatAddress(owner!)}.`,
    })
  })
})

/** What a master stores on the chain. */
const metadataOf = (texts: Record<string, string>): Cell => {
  const entries = Dictionary.empty(Dictionary.Keys.Buffer(32), Dictionary.Values.Cell())
  for (const [name, text] of Object.entries(texts))
    entries.set(
      createHash('sha256').update(name).digest(),
      beginCell().storeUint(0, 8).storeStringTail(text).endCell(),
    )
  return beginCell().storeUint(0, 8).storeDict(entries).endCell()
}

describe('the metadata of a jetton', () => {
  it('has no name of signs that are not shown', () => {
    expect(readMetadata(metadataOf({ name: '\u0001\u202e', symbol: ' ', decimals: '6' }))).toEqual({
      name: null,
      symbol: null,
      decimals: 6,
    })
  })

  it.each([
    ['', null],
    ['\u0001\u0002', null],
    [' ', null],
    ['0x10', null],
    ['-1', null],
    ['256', null],
    ['1.5', null],
    ['0', 0],
    ['255', 255],
    [' 18\u0001', 18],
  ])('has the decimals that %j says', (decimals, expected) => {
    expect(readMetadata(metadataOf({ decimals })).decimals).toBe(expected)
  })

  it('has 9 decimals where it says nothing', () => {
    expect(readMetadata(metadataOf({ name: 'Coral' }))).toEqual({
      name: 'Coral',
      symbol: null,
      decimals: 9,
    })
  })
})
