import { expect, it } from 'vitest'
import type { BroadcastOutcome } from '../pool/pool-types.ts'
import { handoverOf } from './sending.ts'

const error = (message: string, code = -32000) => JSON.stringify({ code, message })
const outcome = (asked: number, ...messages: string[]): BroadcastOutcome => ({
  ...(messages[0] === undefined
    ? { failure: 'TIMEOUT' as const }
    : { ok: false as const, error: error(messages[0]) }),
  asked,
  errors: messages.map((message) => error(message)),
})

// As geth, Erigon, Nethermind, Besu, Reth and anvil write them.
it.each([
  ['insufficient funds for gas * price + value: balance 0, tx cost 21000', 'refused'],
  ['Insufficient funds for gas * price + value', 'refused'],
  ['InsufficientFunds, Balance is zero, cannot pay gas', 'refused'],
  ['intrinsic gas too low: gas 1000, minimum needed 21000', 'refused'],
  ['transaction underpriced: tip needed 1, tip permitted 0', 'refused'],
  ['replacement transaction underpriced', 'refused'],
  ['max fee per gas less than block base fee', 'refused'],
  ['invalid chain id for signer: have 1 want 5', 'refused'],
  ['invalid sender', 'refused'],
  ['exceeds block gas limit', 'refused'],
  ['oversized data: transaction size 200000, limit 131072', 'refused'],
  ['tx fee (2.10 ether) exceeds the configured cap (1.00 ether)', 'refused'],
  ['nonce too low: next nonce 5, tx nonce 3', 'nonce_used'],
  ['OldNonce, Current nonce: 5, nonce of rejected tx: 3', 'nonce_used'],
  ['txpool is full', 'unknown'],
  ['an unknown error', 'unknown'],
  ['rate limit exceeded', 'unknown'],
  ['the method is overloaded, try again', 'unknown'],
])('"%s" of every node is %s', (message, kind) => {
  expect(handoverOf(outcome(1, message)).kind).toBe(kind)
  expect(handoverOf(outcome(2, message, message)).kind).toBe(kind)
})

it('a refusal is certain only when every node that got it has refused it', () => {
  const poor = 'insufficient funds'
  expect(handoverOf(outcome(2, poor)).kind).toBe('unknown')
  expect(handoverOf(outcome(2, poor, 'txpool is full')).kind).toBe('unknown')
  expect(handoverOf(outcome(2, poor, 'nonce too low')).kind).toBe('nonce_used')
  expect(handoverOf({ ok: false, error: error(poor) }).kind).toBe('unknown')
})

it('reports whether any node received it', () => {
  expect(handoverOf({ failure: 'NO_UPSTREAM', asked: 0 }).kind).toBe('unsent')
  expect(handoverOf(outcome(1))).toEqual({ kind: 'unknown', detail: 'no node answered in time' })
  expect(handoverOf({ ok: true, result: '"0x1"' })).toEqual({ kind: 'accepted' })
})
