import { Address, beginCell, type Cell, contractAddress } from '@ton/core'
import { describe, expect, it } from 'vitest'
import { bytesOf } from './cells.ts'
import { type GetMethods, type StackItem, writeAddress } from './get-methods.ts'
import { createFindAccounts } from './jetton-accounts.ts'

const account = (byte: number): Buffer => Buffer.concat([Buffer.alloc(1), Buffer.alloc(32, byte)])
const addressOf = (bytes: Buffer) => new Address(bytes.readInt8(0), bytes.subarray(1))
const master = account(200)
const owners = Array.from({ length: 20 }, (_, at) => account(at + 1))
const code = beginCell().storeUint(7, 8).endCell()
const asset = { asset_type: 'ASSET_TYPE_T', contract_address: master, token_id: 0n } as const
const { signal } = new AbortController()

const plain = (owner: Buffer) =>
  beginCell().storeCoins(0).storeAddress(addressOf(owner)).storeAddress(addressOf(master))
const layouts: Record<string, (owner: Buffer) => Cell> = {
  'keeps its code': (owner) => plain(owner).storeRef(code).endCell(),
  'has no code': (owner) => plain(owner).endCell(),
  'begins with a status': (owner) =>
    beginCell().storeUint(0, 4).storeBuilder(plain(owner)).endCell(),
  'is of an unknown form': (owner) =>
    beginCell().storeUint(9, 32).storeBuilder(plain(owner)).endCell(),
}

const startToken = (dataOf: (owner: Buffer) => Cell, lies: readonly Buffer[] = []) => {
  let calls = 0
  const accountOf = (owner: Buffer) => bytesOf(contractAddress(0, { code, data: dataOf(owner) }))
  const methods: Pick<GetMethods, 'run'> = {
    run: async (address, method, [argument]): Promise<StackItem[] | undefined> => {
      calls++
      if (method === 'get_jetton_data') return [1n, -1n, undefined, undefined, code]
      if (method !== 'get_wallet_address' || !address.equals(master)) return undefined
      const owner = bytesOf(argument!.beginParse().loadAddress())
      const isLie = lies.some((one) => one.equals(owner))
      return [writeAddress(isLie ? account(99) : accountOf(owner))]
    },
  }
  return { find: createFindAccounts({ methods }), accountOf, calls: () => calls }
}

describe('the jetton wallets of many owners', () => {
  it.each(Object.entries(layouts))(
    'are those that the master names: data that %s',
    async (name, layout) => {
      const { find, accountOf, calls } = startToken(layout)
      expect(await find(asset, owners, signal)).toEqual(owners.map(accountOf))
      const asked = name === 'is of an unknown form' ? 3 + 2 * owners.length : 3
      expect(calls()).toBe(asked)
    },
  )

  it('are asked for one by one where the master names another account', async () => {
    const last = owners.at(-1)!
    const { find, accountOf } = startToken(layouts['has no code']!, [last])
    const expected = owners.map((owner) => (owner === last ? account(99) : accountOf(owner)))
    expect(await find(asset, owners, signal)).toEqual(expected)
  })

  it('are asked for one by one where they are few', async () => {
    const { find, accountOf, calls } = startToken(layouts['keeps its code']!)
    expect(await find(asset, owners.slice(0, 2), signal)).toEqual(owners.slice(0, 2).map(accountOf))
    expect(calls()).toBe(4)
  })
})
