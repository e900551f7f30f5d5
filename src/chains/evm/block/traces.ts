// Internal transfers from the two kinds of traces that nodes offer, `callTracer` and `trace_block`. Both are checked to cover
// every transaction of the block: a trace that was cut off would lose deposits silently.

/** Native coin that moved inside a transaction. */
export type InternalTransfer = { from: string; to: string; value: bigint }

/** A frame of `callTracer`. */
type Frame = {
  type: string
  from: string
  to?: string
  value?: string
  error?: string
  calls?: Frame[]
}

/** An entry of `trace_block`. */
type Trace = {
  type: string
  transactionHash?: string | null
  blockHash?: string
  traceAddress: number[]
  error?: string
  action: {
    callType?: string
    from?: string
    to?: string
    value?: string
    address?: string
    refundAddress?: string
    balance?: string
  }
  result?: { address?: string } | null
}

// The others run on the caller's own money, though tracers write the caller's value beside them.
const paying = new Set(['CALL', 'CREATE', 'CREATE2', 'SELFDESTRUCT'])

/**
 * The internal transfers of each transaction by `callTracer`; undefined when it is not its answer. Traces of the `others`,
 * which come after these, are not needed and may be missing.
 */
export function readFrames(
  result: unknown,
  hashes: readonly string[],
  others: readonly string[] = [],
): InternalTransfer[][] | undefined {
  if (!Array.isArray(result)) return undefined
  if (result.length !== hashes.length && result.length !== hashes.length + others.length)
    return undefined
  const all: InternalTransfer[][] = []
  for (const [index, entry] of result.slice(0, hashes.length).entries()) {
    const { txHash, result: root } = entry as { txHash?: string; result?: Frame }
    if (txHash !== undefined && txHash.toLowerCase() !== hashes[index]!.toLowerCase())
      return undefined
    if (typeof root?.type !== 'string') return undefined
    const found: InternalTransfer[] = []
    if (!root.error) for (const call of root.calls ?? []) collect(call, found)
    all.push(found)
  }
  return all
}

function collect(frame: Frame, found: InternalTransfer[]): void {
  // What a failed frame did was undone, with all below it.
  if (frame.error) return
  const value = BigInt(frame.value ?? '0x0')
  if (value > 0n && frame.to && paying.has(frame.type.toUpperCase()))
    found.push({ from: frame.from, to: frame.to, value })
  for (const call of frame.calls ?? []) collect(call, found)
}

/** The internal transfers of each transaction by `trace_block`; undefined when it is not its answer. */
export function readTraces(
  result: unknown,
  {
    hash,
    hashes,
    others = [],
  }: { hash: string; hashes: readonly string[]; others?: readonly string[] },
): InternalTransfer[][] | undefined {
  if (!Array.isArray(result)) return undefined
  const places = new Map(hashes.map((one, index) => [one.toLowerCase(), index]))
  const all: InternalTransfer[][] = hashes.map(() => [])
  const seen = new Set<number>()
  const failed: string[][] = hashes.map(() => [])
  for (const trace of result as Trace[]) {
    if (trace.blockHash?.toLowerCase() !== hash.toLowerCase()) return undefined
    // Rewards of the block itself.
    if (!trace.transactionHash) continue
    const name = trace.transactionHash.toLowerCase()
    const place = places.get(name)
    if (place === undefined) {
      if (others.some((one) => one.toLowerCase() === name)) continue
      return undefined
    }
    seen.add(place)
    const path = trace.traceAddress.map((step) => `${step}/`).join('')
    if (trace.error) failed[place]!.push(path)
    // Traces come depth first: a call that failed is seen before those that it undoes. The empty path is the
    // transaction itself, which is no internal transfer.
    if (failed[place]!.some((above) => path.startsWith(above)) || path === '') continue
    const transfer = transferOf(trace)
    if (transfer && transfer.value > 0n) all[place]!.push(transfer)
  }
  // Every transaction has at least its own trace: an answer that lacks one is cut off.
  return seen.size === hashes.length ? all : undefined
}

// `delegatecall`, `callcode` and `staticcall` have no transfer of their own.
function transferOf({ type, action, result }: Trace): InternalTransfer | undefined {
  if (type === 'suicide' || type === 'selfdestruct')
    return make(action.address, action.refundAddress, action.balance)
  if (type === 'create') return make(action.from, result?.address, action.value)
  if (type === 'call' && (action.callType ?? 'call') === 'call')
    return make(action.from, action.to, action.value)
  return undefined
}

const make = (
  from: string | undefined,
  to: string | undefined,
  value: string | undefined,
): InternalTransfer | undefined =>
  from && to && value ? { from, to, value: BigInt(value) } : undefined
