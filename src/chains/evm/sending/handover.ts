import type { Handover } from '../../sending.ts'
import { meaningOf, readError } from '../pool/node-error.ts'
import type { BroadcastOutcome, RawJson } from '../pool/pool-types.ts'

const nonceUsed =
  /nonce too low|nonce is too low|invalid nonce|OldNonce|nonce.{0,200}already (?:used|consumed)/i

/**
 * The refusals after which a transaction is not in the pool of the node that refuses it: words of
 * geth, Erigon, Nethermind, Besu, Reth and anvil. A full pool is not among them: room comes by itself.
 */
const refusals: readonly RegExp[] = [
  /insufficient (?:funds|balance)|upfront (?:cost|gas) .{0,200}balance|InsufficientFunds|not enough (?:funds|balance)|sender.{0,200}insufficient/i,
  /intrinsic gas|gas too low|GasLimitTooLow|intrinsic_gas/i,
  /underpriced|gas price (?:is )?(?:too low|below)|FeeTooLow|max fee per gas less than|fee cap.{0,200}less than|below (?:the )?(?:minimum|base fee)|priority fee too low/i,
  /chain ?id|invalid sender|invalid signature|replay.?protected|signer/i,
  /exceeds block gas limit|gas limit (?:is )?too high|gas limit reached|GasLimitExceeded/i,
  /oversized data|exceeds max(?:imum)? size|TxSizeLimit|transaction.{0,200}too (?:large|big)/i,
  /exceeds the configured cap|tx fee .{0,200}exceeds/i,
  /nonce gap|nonce too high|NonceTooHigh|NonceGap|nonce too distant/i,
  /rlp|cannot decode|transaction type not supported|invalid transaction (?:type|format)/i,
]

const longest = 300

/** What the answers of all nodes to the same bytes come to. */
export function handoverOf(outcome: BroadcastOutcome): Handover {
  if ('ok' in outcome && outcome.ok) return { kind: 'accepted' }
  const { asked = 1, errors = [] } = outcome
  const detail = 'failure' in outcome ? failureText(outcome.failure) : messageOf(outcome.error)
  if (asked === 0 && errors.length === 0) return { kind: 'unsent', detail }
  if (errors.some((error) => nonceUsed.test(messageOf(error))))
    return { kind: 'nonce_used', detail }
  const isCertain = errors.length === asked && errors.every(isRefusal)
  return { kind: isCertain ? 'refused' : 'unknown', detail }
}

const isRefusal = (error: RawJson): boolean =>
  meaningOf(error) === 'answer' && refusals.some((words) => words.test(messageOf(error)))

const messageOf = (error: RawJson): string =>
  readError(error).message.replaceAll(/\s+/g, ' ').slice(0, longest)

const failureText = (failure: string): string =>
  failure === 'TIMEOUT' ? 'no node answered in time' : 'no node answered'
