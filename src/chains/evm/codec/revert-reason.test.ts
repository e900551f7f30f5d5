import { encodeErrorResult, parseAbi } from 'viem'
import { expect, it } from 'vitest'
import { decodeRevert, reasonOf } from './revert-reason.ts'

const abi = parseAbi([
  'error Error(string)',
  'error Panic(uint256)',
  'error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)',
  'error ERC721NonexistentToken(uint256 id)',
  'error AccessControlUnauthorizedAccount(address account, bytes32 role)',
  'error EnforcedPause()',
  'error Unheard(uint256)',
])
const account = `0x${'ab'.repeat(20)}` as const
const encode = (errorName: string, ...args: unknown[]): string =>
  encodeErrorResult({ abi, errorName, args } as Parameters<typeof encodeErrorResult>[0])

it.each([
  [encode('Error', 'not yours'), 'not yours'],
  [encode('Error', 'a\u202eb\nc'), 'abc'],
  [encode('Panic', 17n), 'an arithmetic overflow'],
  [encode('Panic', 255n), 'panic 255'],
  [
    encode('ERC20InsufficientBalance', account, 5n, 7n),
    `ERC20InsufficientBalance(${account}, 5, 7)`,
  ],
  [encode('ERC721NonexistentToken', 9n), 'ERC721NonexistentToken(9)'],
  [
    encode('AccessControlUnauthorizedAccount', account, `0x${'0c'.repeat(32)}`),
    `AccessControlUnauthorizedAccount(${account}, 0x${'0c'.repeat(32)})`,
  ],
  [encode('EnforcedPause'), 'EnforcedPause()'],
  [encode('Unheard', 1n), `the custom error ${encode('Unheard', 1n).slice(0, 10)}`],
  [encode('Error', 'cut').slice(0, 60), undefined],
  [encode('Error', 'x'.repeat(1_001)), undefined],
  [encode('Panic', 1n).slice(0, 40), 'a panic'],
  [encode('ERC721NonexistentToken', 9n).slice(0, 40), 'ERC721NonexistentToken(?)'],
  ['0x', undefined],
])('%s says %s', async (data, words) => {
  expect(await decodeRevert(data)).toBe(words)
})

it.each([
  [{ message: 'execution reverted', data: encode('Error', 'no') }, 'The contract reverts: no.'],
  [{ message: 'x', data: `Reverted ${encode('Error', 'no')}` }, 'The contract reverts: no.'],
  [{ message: 'x', data: { data: encode('Error', 'no') } }, 'The contract reverts: no.'],
  [
    { message: 'insufficient funds for transfer' },
    'The node says: insufficient funds for transfer.',
  ],
  [{ message: '' }, 'The node says: the call would fail.'],
])('the error %j becomes "%s"', async (error, words) => {
  expect(await reasonOf(error)).toBe(words)
})
