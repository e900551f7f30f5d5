import { expect, onTestFinished } from 'vitest'
import { type SuiNode, startSuiNode } from '../../devnet/sui/node.ts'
import type { Chain, ChainEvent, Position } from '../../src/chains/chain.ts'
import { createSuiChain, type SuiChainOptions } from '../../src/chains/sui/chain.ts'
import { decodeBase58 } from '../../src/lib/base58.ts'
import type { Log } from '../../src/lib/log.ts'

/** A signal that is never aborted. */
export const never = new AbortController().signal

/** Starts a dev node that stops with the test. */
export const start = async (options: Parameters<typeof startSuiNode>[0] = {}): Promise<SuiNode> => {
  const node = await startSuiNode(options)
  onTestFinished(node.stop)
  return node
}

/** Opens a chain with short time limits; `alarms` are its logged errors. */
export const connect = (options: SuiChainOptions): { chain: Chain; alarms: string[] } => {
  const alarms: string[] = []
  const note = (_: object, message: string) => void alarms.push(message)
  const log: Log = { debug() {}, info() {}, warn() {}, error: note }
  const limits = { pollMs: 50, probeMs: 100, timeoutMs: 1_000, stallMs: 400, patienceMs: 500 }
  const chain = createSuiChain({ log, ...options, limits: { ...limits, ...options.limits } })
  onTestFinished(chain.stop)
  return { chain, alarms }
}

/** Follows in the background and keeps every event. */
export const record = (chain: Chain, after: Position) => {
  const events: ChainEvent[] = []
  const stopping = new AbortController()
  const numbers: number[] = []
  const running = (async () => {
    for await (const event of chain.follow(after, stopping.signal)) {
      events.push(event)
      if (event.kind === 'blocks') numbers.push(...event.blocks.map(({ number }) => number))
    }
  })().catch((error: unknown) => {
    if (!stopping.signal.aborted) throw error
  })
  const stop = async () => {
    stopping.abort(new Error('enough'))
    await running
  }
  onTestFinished(stop)
  return { events, numbers, running, stop, last: () => numbers.at(-1) ?? after.number }
}

/** The bytes of a digest. */
export const hashOf = (digest: string): Buffer => decodeBase58(digest)!
/** The position of the first checkpoint. */
export const genesis = ({ ledger }: SuiNode): Position => ({
  number: 0,
  hash: hashOf(ledger.chainId),
})

/** Expects consecutive numbers. */
export const expectGapless = (numbers: readonly number[], first: number) =>
  expect(numbers).toEqual(numbers.map((_, index) => first + index))
