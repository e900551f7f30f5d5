// Get-methods of contracts. Anyone can deploy a contract that fails, or that gives anything: what cannot be read is no answer
// of the contract, and says nothing of the node.

import { Address, beginCell, type Cell } from '@ton/core'
import type { Clock } from '../../lib/clock.ts'
import { formatAddress } from './address.ts'
import { bytesOf, readCell } from './cells.ts'
import { askIsolated } from './isolated.ts'
import type { TonCall, TonNodes } from './nodes.ts'

/** What a get-method gave: numbers and cells, and undefined for anything else. */
export type StackItem = bigint | Cell | undefined

/** Runs get-methods of contracts. */
export type GetMethods = {
  /** Undefined where there is no contract, or it does not do what it is asked for. */
  run(
    address: Buffer,
    method: string,
    stack: readonly Cell[],
    options: { seqno?: number; signal: AbortSignal },
  ): Promise<StackItem[] | undefined>
  /**
   * The same at a block, where a contract that is there and fails is not an answer: nothing may be concluded from it. Undefined
   * where there is no contract. Throws ContractFailedError.
   */
  mustRun(
    address: Buffer,
    method: string,
    stack: readonly Cell[],
    options: { seqno: number; signal: AbortSignal },
  ): Promise<StackItem[] | undefined>
}

/** A contract is there and does not do what it is asked for. */
export class ContractFailedError extends Error {
  override name = 'ContractFailedError'
  /** Whether its own answer shows it. Otherwise no node gave one, which may have another reason. */
  readonly isCertain: boolean
  constructor(message: string, { isCertain }: { isCertain: boolean }) {
    super(message)
    this.isCertain = isCertain
  }
}

// The node's words for: there is no contract at this address.
const noContract = new Set([-13, -256])

/** Asks contracts through their get-methods. */
export function createGetMethods(tools: { nodes: TonNodes; clock: Clock }): GetMethods {
  const runOnce = async (
    address: Buffer,
    method: string,
    stack: readonly Cell[],
    { seqno, signal }: { seqno?: number; signal: AbortSignal },
  ): Promise<Ran | undefined> => {
    const at = seqno === undefined ? {} : { seqno }
    const account = formatAddress(address)
    const slices = stack.map((cell) => ['tvm.Slice', cell.toBoc().toString('base64')])
    const question = {
      method: 'runGetMethod',
      params: { address: account, method, stack: slices, ...at },
      ...at,
      accept: readResult,
    }
    return await askIsolated(tools, { question, control: stateOf(account, at) }, signal)
  }
  return {
    run: async (address, method, stack, options) => {
      const ran =
        (await runOnce(address, method, stack, options)) ??
        // Nodes may have been short of time.
        (await runOnce(address, method, stack, options))
      return ran?.stack
    },
    mustRun: async (address, method, stack, options) => {
      const ran = await runOnce(address, method, stack, options)
      if (!ran) throw new ContractFailedError(`no node can run ${method}`, { isCertain: false })
      if (ran.stack || noContract.has(ran.exit_code)) return ran.stack
      throw new ContractFailedError(`${method} ended with ${ran.exit_code}`, { isCertain: true })
    },
  }
}

/** Asks for the state of an account: a node that answers it serves the block. */
export const stateOf = (address: string, at: { seqno?: number }): TonCall<object> => ({
  method: 'getAddressInformation',
  params: { address, ...at },
  ...at,
  accept: (result) => (typeof result === 'object' && result !== null ? result : undefined),
})

// Of the methods that are called, the longest gives five values.
const mostItems = 8

type Ran = { exit_code: number; stack: StackItem[] | undefined }

function readResult(result: unknown): Ran | undefined {
  const { exit_code, stack } = (result ?? {}) as { exit_code?: unknown; stack?: unknown }
  if (typeof exit_code !== 'number' || !Number.isSafeInteger(exit_code)) return undefined
  // 0 and 1 are the two successful exit codes of TVM.
  if (exit_code !== 0 && exit_code !== 1) return { exit_code, stack: undefined }
  const items = Array.isArray(stack) ? stack : []
  return { exit_code, stack: items.slice(0, mostItems).map(readItem) }
}

function readItem(item: unknown): StackItem {
  const [type, value] = Array.isArray(item) ? (item as [unknown, unknown]) : []
  if (type === 'num') {
    const text = String(value)
    // Both forms are in use: hex and decimal. A number of the virtual machine has 257 bits at the most.
    if (!/^-?(?:0x[0-9a-f]{1,65}|\d{1,78})$/i.test(text)) return undefined
    return text.startsWith('-') ? -BigInt(text.slice(1)) : BigInt(text)
  }
  const bytes = (value as { bytes?: unknown } | null)?.bytes ?? value
  return typeof bytes === 'string' ? readCell(bytes) : undefined
}

/** An address that a get-method gave. */
export function readAddressItem(item: StackItem): Buffer | undefined {
  if (item === undefined || typeof item === 'bigint') return undefined
  try {
    return bytesOf(item.beginParse().loadAddress())
  } catch {
    return undefined
  }
}

/** Whether a get-method gave the address that names no account. */
export const isNoAddress = (item: StackItem): boolean =>
  item !== undefined &&
  typeof item !== 'bigint' &&
  item.bits.length === 2 &&
  !item.bits.at(0) &&
  !item.bits.at(1)

/** An address as an argument of a get-method. */
export const writeAddress = (address: Buffer): Cell =>
  beginCell()
    .storeAddress(new Address(address.readInt8(0), address.subarray(1)))
    .endCell()
