import { ChainUnavailableError } from '../../chain.ts'
import { toQuantity } from '../codec/raw.ts'
import type { Answered, Rpc } from '../pool/rpc.ts'

/** A call that reads a contract. */
export type ContractCall = { to: string; data: string }

/** The block at which contracts are read, as nodes expect it, and which nodes are asked. */
export type CallBlock = { block: unknown; minBlock?: number | undefined }

/** A node's error that is about the node or the block, not about the contract. */
export class NodeRefusalError extends ChainUnavailableError {
  override name = 'NodeRefusalError'
}

// Whether the digits are pairs is asked beside it: within the pattern it takes four times as long.
const data = /^0x[0-9a-f]*$/i
// geth, and those that follow it, give the code to reverts only (internal/ethapi/errors.go).
const revertCode = 3
// Far more than any token needs, and little for a node: it bounds what one that burns gas can cost.
const mostGas = 2_000_000
const aloneTimeoutMs = 5_000
const noAddress = `0x${'0'.repeat(40)}`

/** What a contract returned; undefined when it failed, which is its own affair and no node's. */
export async function callContract(
  rpc: Rpc,
  { call, ...where }: CallBlock & { call: ContractCall },
  signal: AbortSignal,
): Promise<string | undefined> {
  const [returned] = await callContracts(rpc, [call], where, signal)
  return returned
}

/**
 * What contracts returned, each in a request of its own; undefined for each that failed. Nodes have
 * many words for a contract that fails ("stack limit reached 1024 (1023)", "gas uint64 overflow",
 * "return data out of bounds", "write protection": core/vm/errors.go of geth), some of them repeat
 * what the contract says, and anyone can deploy a contract. So no message decides: a call that every
 * node refuses, although the nodes serve the state of the block before and after it, fails by itself.
 */
export async function callContracts(
  rpc: Rpc,
  calls: readonly ContractCall[],
  where: CallBlock,
  signal: AbortSignal,
): Promise<(string | undefined)[]> {
  const first = await Promise.all(calls.map((call) => callOnce(rpc, { call, where }, signal)))
  if (first.every(isDecided)) return first.map(returnedBy)
  await assertServed(rpc, where, signal)
  const said = [...first]
  const undecided = [...calls.keys()].filter((at) => !isDecided(first[at]))
  // One contract after the other, and first one call of each: nodes answer calls that are sent together
  // when the slowest of them is done, and no contract may be taken for another one.
  for (const places of Map.groupBy(undecided, (at) => calls[at]!.to).values()) {
    const again = async (at: number): Promise<void> => {
      said[at] = await callOnce(rpc, { call: calls[at]!, where, alone }, signal)
    }
    const [probe, ...rest] = places as [number, ...number[]]
    await again(probe)
    if (said[probe]) await Promise.all(rest.map(again))
  }
  if (!said.every(isDecided)) await assertServed(rpc, where, signal)
  return said.map(returnedBy)
}

const alone = { everyNode: true, timeoutMs: aloneTimeoutMs } as const

type Said = Answered<string> | undefined

const isDecided = (said: Said): boolean =>
  said?.kind === 'answer' || (said?.kind === 'error' && said.code === revertCode)

const returnedBy = (said: Said): string | undefined =>
  said?.kind === 'answer' ? said.answer : undefined

/** Undefined where no node answered in time. */
async function callOnce(
  rpc: Rpc,
  asked: { call: ContractCall; where: CallBlock; alone?: typeof alone },
  signal: AbortSignal,
): Promise<Said> {
  const { call, where } = asked
  try {
    return await rpc.try({
      method: '_call',
      params: [{ ...call, gas: toQuantity(mostGas) }, where.block],
      ...(where.minBlock !== undefined && { minBlock: where.minBlock }),
      ...asked.alone,
      signal,
      accept: readData,
    })
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof ChainUnavailableError) return undefined
    throw error
  }
}

/** Returned data; undefined for what is none. */
export const readData = (result: unknown): string | undefined =>
  typeof result === 'string' && result.length % 2 === 0 && data.test(result) ? result : undefined

/** Throws unless nodes know the state of the block, and answer a call that cannot fail. */
export async function assertServed(rpc: Rpc, where: CallBlock, signal: AbortSignal): Promise<void> {
  const { block, minBlock } = where
  const ask = async (method: string, params: unknown[]): Promise<void> => {
    const answered = await rpc.try({
      method,
      params,
      ...(minBlock !== undefined && { minBlock }),
      everyNode: true,
      signal,
      accept: readHex,
    })
    if (answered.kind === 'error') throw new NodeRefusalError(answered.message)
    if (answered.kind === 'useless') throw new NodeRefusalError('no answer of use')
  }
  await Promise.all([
    ask('_getBalance', [noAddress, block]),
    ask('_call', [{ to: noAddress, data: '0x' }, block]),
  ])
}

const readHex = (result: unknown): string | undefined =>
  typeof result === 'string' && data.test(result) ? result : undefined
