import type { PortolanError } from './error.ts'

/** The longest wait that the client takes upon itself; beyond it the caller decides. */
const maxWaitSeconds = 30

/**
 * Operations that may be done twice: reads, and writes whose second time changes nothing. Anything
 * else (RegisterWallet, CreateTransaction, RemoveAddress …) is not repeated after a 503, because the
 * first time may have worked although the answer says that it did not.
 */
const repeatable = [
  'Get',
  'List',
  'Set',
  'Update',
  'Refresh',
  'Import',
  'Enable',
  'Submit',
  'Cancel',
  'SendTransaction',
  'RegisterAddress',
  'BatchRegisterAddresses',
]

/** Whether an operation may be repeated after a failure that leaves its effect in doubt. */
export const isRepeatable = (operation: string): boolean =>
  repeatable.some((prefix) => operation.startsWith(prefix))

/**
 * Milliseconds to wait before the next attempt; undefined when there must be none. A 429 was
 * refused before anything was done, so that every operation may be repeated after it.
 */
export function retryDelay(
  error: PortolanError,
  operation: string,
  attempt: number,
  random: () => number = Math.random,
  /** With an idempotency key every operation may be repeated. */
  hasKey = false,
): number | undefined {
  const isSafe =
    error.status === 429 ||
    (error.status === 503 && (hasKey || isRepeatable(operation))) ||
    error.reason === 'IDEMPOTENCY_KEY_IN_USE'
  if (!isSafe) return undefined
  const seconds = error.retry_after
  if (seconds === undefined) return 250 * 2 ** attempt * (1 + random())
  // Spread, so that the callers that were refused together do not come back together.
  return seconds > maxWaitSeconds ? undefined : seconds * 1000 + random() * 250
}
