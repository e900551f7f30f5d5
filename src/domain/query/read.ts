import { MalformedAnswerError, type RawFields } from '../../chains/evm/block/records.ts'
import type { PoolOutcome, RpcReply } from '../../chains/evm/pool/pool-types.ts'
import { OperationError, type Reason } from '../../contract/errors/errors.ts'
import type { Context } from '../context.ts'
import { type QuerySource, sourceOf, unread } from './source.ts'

// Linking takes milliseconds where nodes answer; a query does not wait for a node that hangs.
const longestLinkMs = 1_000
const linkStepMs = 10
const tries = 5
const pauseMs = 200

const hashPattern = /^0x[0-9a-f]{64}$/

/** A block by its number, never one that has left the chain; undefined when there is none. */
export async function readBlock(context: Context, number: number): Promise<RawFields | undefined> {
  const source = sourceOf(context)
  const args = [`0x${number.toString(16)}`, false]
  for (let left = tries; ; left--) {
    const block = await ask(context, source, 'getBlockByNumber', args)
    await settle(context, source)
    if (!block || isCanonical(source, number, hashOf(block.hash))) return block
    // The branch switched after the answer.
    if (left === 0) throw reorganizing()
    await context.clock.sleep(pauseMs, context.signal)
  }
}

/** The chain changes faster than it can be read. */
export const reorganizing = (): OperationError =>
  new OperationError('UPSTREAM_UNAVAILABLE', {
    detail: 'The chain is being reorganized.',
    retryAfter: 1,
  })

/** A transaction as a node returns it, with its block if it has one. */
export type Placed =
  | { kind: 'mined'; raw: RawFields; number: number; hash: string }
  | { kind: 'pending'; raw: RawFields }
  | { kind: 'none' }

const none: Placed = { kind: 'none' }

/** A transaction or its receipt, with the block of the chain that holds it. */
export async function readPlaced(
  context: Context,
  method: 'getTransactionByHash' | 'getTransactionReceipt',
  hash: string,
): Promise<Placed> {
  const source = sourceOf(context)
  const args = [hash.toLowerCase()]
  let placed = place(await ask(context, source, method, args))
  await settle(context, source)
  // Other nodes may have what one has not got yet.
  if (placed.kind === 'none' && source.pool.status().length > 1)
    placed = place(await askNodes(context, source, method, args))
  for (let left = tries; placed.kind === 'mined'; left--) {
    if (isCanonical(source, placed.number, placed.hash)) return placed
    // It is of a node on another branch, however many nodes are on it: the canonical chain alone decides.
    if (left === 0) return none
    await context.clock.sleep(pauseMs, context.signal)
    placed = place(await ask(context, source, method, args))
    await settle(context, source)
  }
  return placed
}

/** Whether the block is the one of the chain at its height, as far as that is known. */
export function isCanonical({ view }: QuerySource, number: number, hash: string): boolean {
  if (number <= view.final()) return true
  if (view.isGone(hash)) return false
  const best = view.bestHashAt(number)
  return best === undefined || best === hash
}

/** Makes a record of a node's answer; an invalid answer is a node failure. */
export function presented<record>(present: () => record): record {
  try {
    return present()
  } catch (error) {
    if (!(error instanceof MalformedAnswerError || error instanceof SyntaxError)) throw error
    throw new OperationError('UPSTREAM_UNAVAILABLE', {
      detail: 'The answer of the node cannot be used.',
      retryAfter: 5,
      cause: error,
    })
  }
}

/** While a branch is being linked it is not known what left the chain; that takes some milliseconds. */
async function settle({ clock, signal }: Context, { view }: QuerySource): Promise<void> {
  const end = clock.now() + longestLinkMs
  while (view.isLinking() && clock.now() < end) await clock.sleep(linkStepMs, signal)
}

function place(raw: RawFields | undefined): Placed {
  if (!raw) return none
  if (raw.blockHash === null || raw.blockHash === undefined) return { kind: 'pending', raw }
  return { kind: 'mined', raw, number: Number(raw.blockNumber), hash: hashOf(raw.blockHash) }
}

const hashOf = (value: unknown): string => {
  const text = typeof value === 'string' ? value.toLowerCase() : ''
  return hashPattern.test(text) ? text : ''
}

/** Asks as the gateway would. */
async function ask(
  { principal }: Context,
  source: QuerySource,
  method: string,
  args: readonly unknown[],
): Promise<RawFields | undefined> {
  const answer = await source.read(principal, `evm_${method}`, args)
  if (!answer.ok) throw unread(answer.reason)
  return objectOf(answer.result)
}

/** Asks nodes that have the best head, one after the other until one has it; nothing is kept. */
async function askNodes(
  { signal }: Context,
  { pool, prefix, timeoutMs }: QuerySource,
  method: string,
  args: readonly unknown[],
): Promise<RawFields | undefined> {
  const head = pool.head()
  const outcome = await pool.request({
    method: `${prefix}_${method}`,
    params: JSON.stringify(args),
    idempotent: true,
    timeoutMs,
    signal,
    ...(head && { minBlock: head.number }),
    isUseless: (reply: RpcReply) => reply.ok && reply.result === 'null',
  })
  return objectOf(resultOf(outcome))
}

const failures = {
  NO_UPSTREAM: 'UPSTREAM_UNAVAILABLE',
  ABORTED: 'UPSTREAM_UNAVAILABLE',
  TIMEOUT: 'UPSTREAM_TIMEOUT',
  REPLY_TOO_LARGE: 'RESPONSE_TOO_LARGE',
} as const satisfies Record<string, Reason>

/** The text of a result; other outcomes become errors of the caller. */
export function resultOf(outcome: PoolOutcome): string {
  if ('failure' in outcome) throw unread(failures[outcome.failure])
  if (!outcome.ok) throw unread('UPSTREAM_UNAVAILABLE')
  return outcome.result
}

function objectOf(result: string): RawFields | undefined {
  const value: unknown = presented(() => JSON.parse(result))
  if (value === null) return undefined
  if (typeof value === 'object' && !Array.isArray(value)) return value as RawFields
  return presented(() => {
    throw new MalformedAnswerError('not an object')
  })
}
