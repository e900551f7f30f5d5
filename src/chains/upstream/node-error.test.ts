import { expect, test } from 'vitest'
import { meaningOf } from './node-error.ts'

test.each([
  // geth, Erigon, Nethermind, Besu, Reth, anvil
  [-32000, 'header not found', 'useless'],
  [-32000, 'missing trie node 5f… (path ) state 0x5f… is not available', 'useless'],
  [-32000, 'required historical state unavailable (reexec=128)', 'useless'],
  [4444, 'pruned history unavailable', 'useless'],
  [-32001, 'Resource not found.', 'useless'],
  [-32602, 'BlockOutOfRangeError: block height is 392 but requested was 16', 'useless'],
  [-32000, 'old data not available due to pruning', 'useless'],
  [-32002, 'request timed out', 'useless'],
  [-32000, 'node is still syncing', 'useless'],
  [-32601, 'the method trace_block does not exist/is not available', 'lacks_method'],
  [-32601, 'Method not found', 'lacks_method'],
  [-32004, 'Method not supported', 'lacks_method'],
  // hosted services
  [-32005, 'daily request count exceeded, request rate limited', 'rate_limited'],
  [429, 'Your app has exceeded its compute units per second capacity', 'rate_limited'],
  [-32007, '50/second request limit reached', 'rate_limited'],
  [-32029, 'Too Many Requests', 'rate_limited'],
  // answers
  [-32005, 'query returned more than 10000 results', 'answer'],
  [-32602, 'exceed maximum block range: 5000', 'answer'],
  [-32000, 'insufficient funds for gas * price + value', 'answer'],
  [-32000, 'nonce too low', 'answer'],
  [3, 'execution reverted: header not found', 'answer'],
  [-32000, 'execution reverted: rate limit exceeded', 'answer'],
  [-32015, 'VM Exception while processing transaction: revert too many requests', 'answer'],
  [-32602, 'invalid argument 0: hex string has length 38, want 40 for common.Address', 'answer'],
])('%i %s is %s', (code, message, expected) => {
  expect(meaningOf(JSON.stringify({ code, message }))).toBe(expected)
})

test('an error of no known shape is an answer', () => {
  for (const error of ['{}', '{"code":"x"}', '{"message":5}', '[]', ''])
    expect(meaningOf(error)).toBe('answer')
})
