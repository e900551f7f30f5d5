import { encodeAbiParameters, encodeFunctionData, encodeFunctionResult, parseAbi } from 'viem'
import { describe, expect, it } from 'vitest'
import { addressOf } from '../testing/stub-chain.ts'
import { decodeAggregate, encodeAggregate, encodeCall, readText, readWord } from './abi.ts'

const abi = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) payable returns (Result[] results)',
  'function balanceOf(address account, uint256 id) returns (uint256)',
])
const account = addressOf(0xabc)

describe('calls', () => {
  it('are written as viem writes them', () => {
    expect(encodeCall('balanceOf(address,uint256)', Buffer.from(account.slice(2), 'hex'), 7n)).toBe(
      encodeFunctionData({ abi, functionName: 'balanceOf', args: [account as `0x${string}`, 7n] }),
    )
    const calls = [
      { to: 0, signature: 'symbol()', args: [] },
      { to: 0xabc, signature: 'balanceOf(address)', args: [Buffer.from(account.slice(2), 'hex')] },
      { to: 2 ** 40, signature: 'two(uint256,uint256)', args: [7n, 2n ** 256n - 1n] },
    ]
    expect(
      encodeAggregate(
        calls.map(({ to, ...call }) => ({
          to: Buffer.from(addressOf(to).slice(2), 'hex'),
          ...call,
        })),
      ),
    ).toBe(
      encodeFunctionData({
        abi,
        functionName: 'aggregate3',
        args: [
          calls.map(({ to, signature, args }) => ({
            target: addressOf(to) as `0x${string}`,
            allowFailure: true,
            callData: encodeCall(signature, ...args) as `0x${string}`,
          })),
        ],
      }),
    )
    expect(encodeAggregate([])).toBe(
      encodeFunctionData({ abi, functionName: 'aggregate3', args: [[]] }),
    )
  })

  it('are answered as viem writes answers, and by nothing else', () => {
    const words = ['0x', '0x01', `0x${'ab'.repeat(40)}`, `0x${'00'.repeat(24)}${'ff'.repeat(8)}`]
    const results = words.map((returnData, index) => ({
      success: index !== 1,
      returnData: returnData as `0x${string}`,
    }))
    const data = encodeFunctionResult({ abi, functionName: 'aggregate3', result: results })
    expect(decodeAggregate(data, 4)).toEqual([
      undefined,
      undefined,
      BigInt(`0x${'ab'.repeat(32)}`),
      2n ** 64n - 1n,
    ])
    expect(decodeAggregate(data, 3)).toBeUndefined()
    expect(decodeAggregate('0x', 4)).toBeUndefined()
    for (let length = 2; length < data.length; length += 31)
      expect(decodeAggregate(data.slice(0, length), 4)).toBeUndefined()
  })
})

describe('texts', () => {
  const text = (value: string) => readText(encodeAbiParameters([{ type: 'string' }], [value]))

  it('are read from strings and from bytes32', () => {
    expect(text('Größe €')).toBe('Größe €')
    expect(text('')).toBe('')
    expect(readText(`0x${Buffer.from('MKR').toString('hex').padEnd(64, '0')}`)).toBe('MKR')
  })

  it('lose what would break a line or a table', () => {
    expect(text('a\u0000b\u202ec\n')).toBe('abc')
  })

  it.each([
    ['nothing', '0x'],
    ['a number', `0x${'ff'.repeat(64)}`],
    ['a length beyond the data', `0x${'20'.padStart(64, '0')}${'ff'.padStart(64, '0')}`],
    ['a huge length', `0x${'20'.padStart(64, '0')}${'f'.repeat(64)}${'00'.repeat(32)}`],
  ])('are not read from %s', (_, data) => {
    expect(readText(data)).toBeUndefined()
  })

  it('words end with the data', () => {
    expect(readWord(`0x${'1'.padStart(64, '0')}`)).toBe(1n)
    expect(readWord('0x01')).toBeUndefined()
  })
})
