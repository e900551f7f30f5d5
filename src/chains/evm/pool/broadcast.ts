import { hash } from 'node:crypto'
import { isUnsent, type TransportOutcome } from '../transport/transport.ts'
import type { Asker } from './ask.ts'
import { isExecutionError, meaningOf, readError } from './node-error.ts'
import type { BroadcastOutcome, PoolFailure, RawJson } from './pool-types.ts'
import { isUsable, type Upstream } from './upstream.ts'

const alreadyKnown =
  /already ?known|known transaction|already (?:imported|exists|in (?:the )?(?:mem)?pool)|transaction.{0,200}already/i
// A node that has mined the transaction answers so too: the hash decides which of the two it is.
const nonceTooLow = /nonce too low|nonce is too low|invalid nonce|OldNonce/i

// The more an error says about the transaction itself, the earlier it stands.
const informative = [
  /insufficient funds|balance/i,
  /nonce/i,
  /underpriced|fee|gas/i,
  /chain ?id|sender|signature|rlp|decode|type/i,
  /exceeds|limit|size/i,
]

/**
 * Sends a transaction to every usable node; undefined when there is none. `isInterrupted` says that no node has
 * answered, and that one connection ended for another call.
 */
export function broadcast(
  { upstreams, ask, prefix }: { upstreams: readonly Upstream[]; ask: Asker; prefix: string },
  rawTransaction: RawJson,
  timeoutMs: number,
): Promise<BroadcastOutcome & { isInterrupted?: boolean }> | undefined {
  const targets = upstreams.filter(isUsable)
  if (targets.length === 0) return undefined
  const { promise, resolve } = Promise.withResolvers<
    BroadcastOutcome & { isInterrupted?: boolean }
  >()
  const txHash = hashOf(rawTransaction)
  const errors: RawJson[] = []
  let left = targets.length
  // Nodes that may have it; zero proves that none has.
  let asked = targets.length
  let failure: PoolFailure = 'NO_UPSTREAM'
  let isInterrupted = false

  const isMined = (upstream: Upstream): Promise<boolean> =>
    new Promise((answer) => {
      const call = {
        method: `${prefix}_getTransactionByHash`,
        params: `[${txHash}]`,
        timeoutMs,
        idempotent: true,
      }
      ask(upstream, call, (outcome) =>
        answer(!('failed' in outcome) && outcome.ok && outcome.result !== 'null'),
      )
    })

  const take = async (upstream: Upstream, outcome: TransportOutcome): Promise<void> => {
    if ('failed' in outcome) {
      if (outcome.failed === 'timeout') failure = 'TIMEOUT'
      if (outcome.failed === 'interrupted') isInterrupted = true
      if (isUnsent(outcome)) asked--
    } else if (outcome.ok) resolve(outcome)
    else {
      const { message } = readError(outcome.error)
      // Some chains run the transaction first: a contract that says "already known" is no pool that has it.
      const isPools = !isExecutionError(outcome.error)
      const isKnown =
        isPools &&
        (alreadyKnown.test(message) || (nonceTooLow.test(message) && (await isMined(upstream))))
      if (isKnown && txHash) resolve({ ok: true, result: txHash })
      errors.push(outcome.error)
    }
    if (--left > 0) return
    const error = mostInformative(errors)
    if (error === undefined) resolve({ failure, asked, errors, isInterrupted })
    else resolve({ ok: false, error, asked, errors })
  }

  for (const upstream of targets) {
    const call = {
      method: `${prefix}_sendRawTransaction`,
      params: `[${rawTransaction}]`,
      timeoutMs,
      // Never repeated by the transport: the sender decides by the state of the transaction.
      idempotent: false,
    }
    ask(upstream, call, (outcome) => void take(upstream, outcome))
  }
  return promise
}

/** Of several refusals, the most specific one. */
export function mostInformative(errors: RawJson[]): RawJson | undefined {
  const rank = (error: RawJson): number => {
    const { message } = readError(error)
    if (meaningOf(error) !== 'answer') return informative.length + 1
    const at = informative.findIndex((words) => words.test(message))
    return at < 0 ? informative.length : at
  }
  return errors.toSorted((a, b) => rank(a) - rank(b))[0]
}

function hashOf(rawTransaction: RawJson): RawJson | undefined {
  const digits = /^"0x((?:[0-9a-f]{2})+)"$/i.exec(rawTransaction)?.[1]
  if (digits === undefined) return undefined
  return `"0x${hash('keccak-256', Buffer.from(digits, 'hex'), 'hex')}"`
}
