import { expect, test } from 'vitest'
import { isSurelyUnknownMethod, lackOf, meaningOf } from './node-error.ts'

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
  // Besu's refusal of a sender: it depends on the transaction and must not cool the node down.
  [-32007, 'Sender account not authorized to send transactions', 'answer'],
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
  // Besu and Nethermind refuse a range with the code of many rate limits.
  [-32005, 'Requested range exceeds maximum RPC range limit', 'answer'],
  [-32005, 'Too many logs requested. Max logs per response is 20000.', 'answer'],
  // The size and the pool limits of geth and Erigon are about the transaction.
  [-32000, 'max initcode size exceeded: code size 49153 limit 49152', 'answer'],
  [-32000, 'account limit exceeded', 'answer'],
  [-32000, 'oversized data: transaction size 200000, limit 131072', 'answer'],
  // execution-apis, eth_simulateV1: a fee, a time limit, a nonce.
  [-32005, 'max fee per gas less than block base fee', 'answer'],
  [-32016, 'execution timeout', 'answer'],
  [-38010, 'nonce too low: header not found', 'answer'],
  [-32005, 'limit exceeded', 'rate_limited'],
  [-32016, 'over rate limit', 'rate_limited'],
  [-32012, 'credits limited to 6000/sec', 'rate_limited'],
  [-32012, 'block range is limited to 10000', 'answer'],
  [-32605, 'Rate Limit', 'rate_limited'],
  // Codes without a documented meaning: only words count, and they do not cool the node down.
  [-32097, 'pending response rejected', 'answer'],
  [-32090, 'too many requests', 'useless'],
  // Codes that serve for everything: another node is asked, and this one is not cooled down.
  [-32000, 'too many requests', 'useless'],
  [-32603, 'Your app has exceeded its compute units per second capacity', 'useless'],
  [-32000, 'rate limit exceeded', 'useless'],
  [-32000, 'execution aborted (timeout = 5s)', 'answer'],
  // Words of a user under codes that nodes use for their own errors as well.
  [-32602, 'invalid value: string "too many requests", expected a valid hex string', 'answer'],
  [-32603, 'invalid value: string "too many requests", expected a valid hex string', 'answer'],
  [-32602, 'too many requests', 'answer'],
  [-32603, "Error: VM Exception: reverted with reason string 'header not found'", 'answer'],
  [-32000, 'Execution reverted: block not found', 'answer'],
  [-32015, 'block not found', 'answer'],
  [3, 'missing trie node', 'answer'],
  // geth, Erigon: a range that ends after the head of this node.
  [-32602, 'block range extends beyond current head block', 'useless'],
  [
    -32000,
    'requested block range [4096, 8192] is beyond latest executed block 4000 (node is still syncing)',
    'useless',
  ],
  [-32000, 'transaction indexing is in progress', 'useless'],
  [-32602, 'data did not match any variant of untagged enum EthRpcCall', 'lacks_method'],
  [-32600, 'Unsupported method: debug_traceCall. See available methods', 'lacks_method'],
])('%i %s is %s', (code, message, expected) => {
  expect(meaningOf(JSON.stringify({ code, message }))).toBe(expected)
})

test('an error of no known shape is an answer', () => {
  for (const error of ['{}', '{"code":"x"}', '{"message":5}', '[]', ''])
    expect(meaningOf(error)).toBe('answer')
})

test.each([
  ['too many requests', '["too many requests"]'],
  ['bad input: too many requests', '[{"a":"TOO MANY REQUESTS"}]'],
  // The same text, spelled with an escape.
  ['bad input: too many requests', '["\\u0074oo many requests"]'],
  ['cannot use header not found', '["header not found"]'],
])('words of the request in the error say nothing about the node: %s %s', (message, params) => {
  const error = JSON.stringify({ code: -32000, message })
  expect(meaningOf(error, params)).toBe('answer')
  expect(meaningOf(error, '["0x1"]')).not.toBe('answer')
})

test('the data of an error is not read', () => {
  const error = { code: -32000, message: 'failed', data: 'header not found, too many requests' }
  expect(meaningOf(JSON.stringify(error))).toBe('answer')
})

test.each([
  [-32000, 'header not found', 'block'],
  [-32000, 'unknown block', 'block'],
  [-32000, 'missing block data', 'block'],
  [-32001, 'Resource not found', 'block'],
  [-32602, 'BlockOutOfRangeError: block height is 5 but requested was 9', 'block'],
  [-32602, 'x BlockOutOfRangeError: block height is 5 but requested was 9', undefined],
  [-32000, 'missing trie node 5f', 'state'],
  [4444, 'pruned history unavailable', 'state'],
  [-32000, 'World state unavailable', 'state'],
  [3, 'execution reverted: header not found', undefined],
  [-32000, 'insufficient funds', undefined],
])('%i %s: what the node lacks is the %s', (code, message, lack) => {
  expect(lackOf(JSON.stringify({ code, message }))).toBe(lack)
})

test('an error that may be about the parameters does not prove that a method is unknown', () => {
  const error = (code: number, message: string) => JSON.stringify({ code, message })
  expect(isSurelyUnknownMethod(error(-32601, 'Method not found'))).toBe(true)
  expect(
    isSurelyUnknownMethod(
      error(-32602, 'data did not match any variant of untagged enum EthRpcCall'),
    ),
  ).toBe(false)
})
