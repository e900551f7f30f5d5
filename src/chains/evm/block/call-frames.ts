import { toInteger } from '../../../lib/integers.ts'
import { MalformedAnswerError, type RawFields } from './records.ts'

/** One call inside a transaction: the internal transaction record of spec 2.12. */
export type CallFrame = {
  transaction_hash: string
  from: string
  to: string | null
  gas: number
  gas_used: number
  input: string
  output: string
  call_type: string
  trace_index: string
  value: string
  error: string
}

// Nodes write hex digits in either case; records have one form.
const lower = (value: unknown, missing: string): string =>
  typeof value === 'string' ? value.toLowerCase() : missing
const big = (value: unknown, missing = 0n): bigint => {
  if (value === undefined || value === null || value === '0x') return missing
  if (typeof value !== 'string' && typeof value !== 'number')
    throw new MalformedAnswerError('a quantity of a trace is no quantity')
  return BigInt(value)
}
const address = (value: unknown): string => {
  if (typeof value !== 'string') throw new MalformedAnswerError('a trace lacks an address')
  return value.toLowerCase()
}

// The code of another runs on the caller's own money: nothing moves, whatever value stands beside it.
const movesNothing = new Set(['delegatecall', 'staticcall', 'callcode'])
const movedBy = (type: string, value: unknown): string =>
  movesNothing.has(type) ? '0' : big(value).toString()

// Tracers have other words for the commonest failures.
const sameError: Readonly<Record<string, string>> = {
  Reverted: 'execution reverted',
  'Out of gas': 'out of gas',
  'Bad instruction': 'invalid opcode',
}

type Step = { frame: RawFields; path: string }

/**
 * The calls below the top one by `callTracer`, depth first. Without recursion: the depth of a trace is
 * what a contract makes it.
 */
export function readCallTracer(result: unknown, transaction_hash: string): CallFrame[] {
  const root = result as RawFields | null
  // Some nodes answer with another tracer's empty result where they do not know the transaction.
  if (typeof root?.type !== 'string') throw new MalformedAnswerError('no result of callTracer')
  const found: CallFrame[] = []
  const steps: Step[] = childrenOf(root, '')
  for (let step = steps.pop(); step; step = steps.pop()) {
    const { frame, path } = step
    const call_type = String(frame.type).toLowerCase()
    const error = typeof frame.error === 'string' ? frame.error : ''
    found.push({
      transaction_hash,
      from: address(frame.from),
      to: typeof frame.to === 'string' ? frame.to.toLowerCase() : null,
      gas: toInteger(big(frame.gas)),
      gas_used: toInteger(big(frame.gasUsed)),
      input: lower(frame.input, '0x'),
      output: lower(frame.output, '0x'),
      call_type,
      trace_index: path,
      value: movedBy(call_type, frame.value),
      error,
    })
    for (const child of childrenOf(frame, `${path}_`)) steps.push(child)
  }
  return found
}

/** The last comes first, because they are taken from the end. */
function childrenOf({ calls }: RawFields, prefix: string): Step[] {
  if (calls === undefined || calls === null) return []
  if (!Array.isArray(calls)) throw new MalformedAnswerError('calls is no array')
  return calls.map((frame: RawFields, index) => ({ frame, path: `${prefix}${index}` })).reverse()
}

type Trace = {
  type?: unknown
  transactionHash?: unknown
  blockHash?: unknown
  traceAddress?: unknown
  error?: unknown
  action?: RawFields
  result?: RawFields | null
}

/** The same by `trace_transaction`. */
export function readParityTraces(
  result: unknown,
  { transaction_hash, block_hash }: { transaction_hash: string; block_hash: string },
): CallFrame[] {
  // Even a plain payment has its top call.
  if (!Array.isArray(result) || result.length === 0)
    throw new MalformedAnswerError('no result of trace_transaction')
  const found = (result as Trace[]).map((trace) => {
    if (lower(trace.blockHash, '') !== block_hash)
      throw new MalformedAnswerError('a trace is of another block')
    if (!Array.isArray(trace.traceAddress)) throw new MalformedAnswerError('a trace has no place')
    const place = trace.traceAddress.map(Number)
    return { place, frame: { transaction_hash, ...frameOf(trace), trace_index: place.join('_') } }
  })
  return found
    .filter(({ place }) => place.length > 0)
    .sort((one, other) => compare(one.place, other.place))
    .map(({ frame }) => frame)
}

/** Depth first: a call comes before the calls inside of it. */
function compare(one: readonly number[], other: readonly number[]): number {
  for (const [index, step] of one.entries()) {
    const difference = step - (other[index] ?? -1)
    if (difference !== 0) return difference
  }
  return one.length - other.length
}

function frameOf({ type, action = {}, result, error: words }: Trace) {
  const error = typeof words === 'string' ? (sameError[words] ?? words) : ''
  const gas = big(action.gas)
  const common = {
    gas: toInteger(gas),
    // A call that fails other than by reverting has used all its gas.
    gas_used: toInteger(big(result?.gasUsed, error ? gas : 0n)),
    error,
  }
  if (type === 'suicide' || type === 'selfdestruct')
    return {
      ...common,
      from: address(action.address),
      to: address(action.refundAddress),
      input: '0x',
      output: '0x',
      call_type: 'selfdestruct',
      value: movedBy('selfdestruct', action.balance),
    }
  if (type === 'create') {
    const call_type = lower(action.creationMethod, 'create')
    return {
      ...common,
      from: address(action.from),
      // What was not made has no address, though some tracers name the one it would have had.
      to: error || !result?.address ? null : address(result.address),
      input: lower(action.init, '0x'),
      output: lower(result?.code, '0x'),
      call_type,
      value: movedBy(call_type, action.value),
    }
  }
  const call_type = lower(action.callType, 'call')
  return {
    ...common,
    from: address(action.from),
    to: typeof action.to === 'string' ? action.to.toLowerCase() : null,
    input: lower(action.input, '0x'),
    output: lower(result?.output, '0x'),
    call_type,
    value: movedBy(call_type, action.value),
  }
}
