import { ChainUnavailableError } from '../../chains/chain.ts'
import { OperationError } from '../../contract/errors/errors.ts'

/** Queries the chain for a caller; throws an operation error when no node can answer. */
export async function askChain<answer>(ask: () => Promise<answer>): Promise<answer> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof ChainUnavailableError)) throw error
    throw new OperationError('UPSTREAM_UNAVAILABLE', { retryAfter: 5, cause: error })
  }
}
