import { checksumProblem, lowerChecksum } from '../../../client/src/checksum.ts'
import { readConnectionFile } from '../call/target.ts'
import { CliError } from '../cli-error.ts'
import { type GlobalOptions, print, type Shell } from '../shell.ts'

// A local chain answers within its block time; a loaded machine needs longer.
const timeoutMs = 60_000

/** Sends native coin on a local chain and prints the transaction. */
export async function fund(
  shell: Shell,
  request: { chain: string; address: string; amount: bigint | undefined },
  options: GlobalOptions,
): Promise<void> {
  const { chain, amount } = request
  const isEvm = chain === 'c' || chain === 'q'
  const problem = isEvm ? checksumProblem(request.address) : undefined
  if (problem !== undefined) throw new CliError(`address: ${problem}`)
  const address = isEvm ? lowerChecksum(request.address) : request.address
  const { transaction_hash } = await post<{ transaction_hash: string }>(shell, options, 'faucet', {
    chain,
    address,
    ...(amount !== undefined && { amount: `${amount}` }),
  })
  print(shell, transaction_hash)
}

/** Replaces the newest blocks of a local chain. */
export async function reorganize(
  shell: Shell,
  request: { chain: string; depth: number },
  options: GlobalOptions,
): Promise<void> {
  await post(shell, options, 'reorg', request)
  print(shell, request.depth === 1 ? '1 block replaced' : `${request.depth} blocks replaced`)
}

async function post<answer>(
  shell: Shell,
  options: GlobalOptions,
  what: string,
  body: object,
): Promise<answer> {
  const { base_url } = await readConnectionFile(shell, options)
  const answer = await fetch(new URL(`/dev/v1/${what}`, base_url), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(timeoutMs),
  }).catch((cause: unknown) => {
    throw new CliError(`The service at ${base_url} does not answer. Is it running?`, { cause })
  })
  if (answer.ok) return (await answer.json()) as answer
  if (answer.status === 404)
    throw new CliError('This service has no local chains: it was started with a configuration.')
  const problem = (await answer.json().catch(() => ({}))) as {
    detail?: string
    errors?: { field: string; detail: string }[]
  }
  const fields = (problem.errors ?? []).map(({ field, detail }) => `${field}: ${detail}`)
  throw new CliError(fields.join('\n') || problem.detail || `Refused with ${answer.status}.`)
}
