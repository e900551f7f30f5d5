import { describe, expect, it } from 'vitest'
import type { AssetType } from '../../../contract/records/assets.ts'
import type { RawLog } from '../codec/raw.ts'
import { batchTopic, singleTopic, transferTopic } from '../codec/topics.ts'
import { addressOf, wordOf } from '../testing/stub-chain.ts'
import { createAssets, createNamedAddresses } from './names.ts'
import { movementsOf, placesOf, readTokenLog, usualType } from './token-logs.ts'

const contract = addressOf(0xc0)
const [from, to] = [addressOf(0xa), addressOf(0xb)]
const log = (topics: string[], ...words: (number | bigint)[]): RawLog => ({
  address: contract,
  topics,
  data: `0x${words.map((word) => wordOf(word).slice(2)).join('')}`,
})
const pair = [wordOf(from), wordOf(to)]
const multi = (topic: string, ...words: (number | bigint)[]) =>
  log([topic, wordOf(1), ...pair], ...words)
const read = (one: RawLog) => {
  const addresses = createNamedAddresses()
  const log = readTokenLog(one, addresses)
  const { distinct, at } = addresses.read()
  return { log, addressOf: (number: number) => distinct[at[number]!]! }
}
const found = (one: RawLog, asset_type?: AssetType) => {
  const { log, addressOf } = read(one)
  const movements = log
    ? movementsOf(
        log,
        { contract: addressOf(log.contract), asset_type: asset_type ?? usualType(log) },
        createAssets(),
      )
    : []
  return movements.map(({ asset, value }) => [asset.asset_type, asset.token_id, value])
}

describe('a log of a token', () => {
  it('has the topics that the standards say', () => {
    expect([transferTopic, singleTopic, batchTopic]).toEqual([
      '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
      '0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62',
      '0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb',
    ])
  })

  it.each([
    ['ERC-20', log([transferTopic, ...pair], 500), [['ASSET_TYPE_ERC20', 0n, 500n]]],
    ['ERC-721', log([transferTopic, ...pair, wordOf(7)]), [['ASSET_TYPE_ERC721', 7n, 1n]]],
    ['ERC-1155', multi(singleTopic, 3, 4), [['ASSET_TYPE_ERC1155', 3n, 4n]]],
    [
      'ERC-1155 with many kinds',
      multi(batchTopic, 64, 160, 2, 5, 6, 2, 50, 60),
      [
        ['ASSET_TYPE_ERC1155', 5n, 50n],
        ['ASSET_TYPE_ERC1155', 6n, 60n],
      ],
    ],
    ['ERC-1155 with no kind at all', multi(batchTopic, 64, 96, 0, 0), []],
  ])('of %s is read', (_, one, expected) => {
    expect(found(one)).toEqual(expected)
    const { log, addressOf } = read(one)
    const ends = [log!.from, log!.to, log!.contract].map(addressOf)
    expect(ends.map((end) => `0x${end.toString('hex')}`)).toEqual([from, to, contract])
  })

  it('is of the type as which the contract is registered, whatever it indexes', () => {
    const indexed = log([transferTopic, ...pair, wordOf(7)])
    expect(found(indexed, 'ASSET_TYPE_ERC20')).toEqual([['ASSET_TYPE_ERC20', 0n, 7n]])
    const plain = log([transferTopic, ...pair], 7)
    expect(found(plain, 'ASSET_TYPE_ERC721')).toEqual([['ASSET_TYPE_ERC721', 7n, 1n]])
    // Logs of another standard are none of this contract's.
    expect(found(plain, 'ASSET_TYPE_ERC1155')).toEqual([])
    for (const type of ['ASSET_TYPE_ERC20', 'ASSET_TYPE_ERC721'] as const)
      expect(found(multi(singleTopic, 3, 4), type)).toEqual([])
  })

  it('takes the largest amounts and ids', () => {
    const most = 2n ** 256n - 1n
    expect(found(log([transferTopic, ...pair], most))).toEqual([['ASSET_TYPE_ERC20', 0n, most]])
    expect(found(multi(singleTopic, most, most))).toEqual([['ASSET_TYPE_ERC1155', most, most]])
  })

  it.each([
    ['no topic', log([], 1)],
    ['another topic', log([wordOf(1), ...pair], 1)],
    ['an end that is not indexed', log([transferTopic, wordOf(from)], 1, 2)],
    ['nothing indexed', log([transferTopic], 1, 2, 3)],
    ['no amount', log([transferTopic, ...pair])],
    ['half an amount', { ...log([transferTopic, ...pair]), data: '0x0011' }],
    ['a kind without an amount', multi(singleTopic, 3)],
    ['three topics of an ERC-1155', log([singleTopic, ...pair], 1, 2, 3)],
    ['arrays of different lengths', multi(batchTopic, 64, 160, 2, 5, 6, 1, 50)],
    ['an array longer than the data', multi(batchTopic, 64, 96, 9, 9)],
    ['an array of 2^255 items', multi(batchTopic, 64, 96, 2n ** 255n, 0)],
    ['an array beyond the data', multi(batchTopic, 2n ** 200n, 96, 0, 0)],
    ['an array between two words', multi(batchTopic, 65, 96, 0, 0)],
  ])('with %s is no movement, and takes one place', (_, one) => {
    expect(found(one)).toEqual([])
    expect(placesOf(one)).toBe(1)
  })

  it('with many kinds takes as many places', () => {
    expect(placesOf(multi(batchTopic, 64, 160, 2, 5, 6, 2, 50, 60))).toBe(2)
  })
})
