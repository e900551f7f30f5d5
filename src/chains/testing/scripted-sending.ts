import { intrinsicGas } from '../evm/sending/sending.ts'
import { toHex } from '../hex.ts'
import type { Handover, Sending } from '../sending.ts'
import type { ScriptedBlock, ScriptedTransaction } from './scripted-block.ts'

/** A transaction in the pool of the scripted nodes. */
export type PooledTransaction = { from: Buffer; nonce: number; hash: Buffer; gas_price: bigint }

/** Sending into a chain in memory: its nodes have one pool, and their answers can be scripted. */
export type ScriptedSending = Sending & {
  /** What the next hand-overs are answered with, and whether the pool takes them all the same. */
  answers: { handover: Handover | Error; isTaken: boolean }[]
  /** How often bytes were handed over, by the hash of the transaction. */
  handovers: Map<string, number>
  pool: Map<string, PooledTransaction>
  /** What addresses have for value and fees, by their hex; plenty where nothing is said. */
  funds: Map<string, bigint>
  /** Takes out of the pool what the next block can hold. */
  takeMinable(): ScriptedTransaction[]
}

const gasPrice = 1_000_000_000n
const accepted: Handover = { kind: 'accepted' }

/** Makes the sending side of a scripted chain. */
export function createScriptedSending(options: {
  canonical(): readonly ScriptedBlock[]
  pass(signal: AbortSignal): Promise<void>
}): ScriptedSending {
  const { canonical, pass } = options
  const pool = new Map<string, PooledTransaction>()
  const answers: ScriptedSending['answers'] = []
  const handovers = new Map<string, number>()
  const funds = new Map<string, bigint>()
  const fundsOf = (address: Buffer) => funds.get(toHex(address)) ?? 10n ** 30n
  const nameOf = ({ from, nonce }: { from: Buffer; nonce: number }) => `${toHex(from)}/${nonce}`
  const sentUpTo = (number: number) =>
    canonical()
      .slice(0, number + 1)
      .flatMap((block) => (block.sent ?? []).map((one) => ({ ...one, block })))
  const countOf = (from: Buffer) =>
    sentUpTo(canonical().length).filter((one) => one.from.equals(from)).length

  const take = (one: PooledTransaction): Handover => {
    if (countOf(one.from) > one.nonce) {
      const isOwn = sentUpTo(canonical().length).some(({ hash }) => hash().equals(one.hash))
      return isOwn ? accepted : { kind: 'nonce_used', detail: 'nonce too low' }
    }
    const other = pool.get(nameOf(one))
    if (other && !other.hash.equals(one.hash) && one.gas_price * 10n < other.gas_price * 11n)
      return { kind: 'refused', detail: 'replacement transaction underpriced' }
    pool.set(nameOf(one), one)
    return accepted
  }

  return {
    answers,
    handovers,
    pool,
    funds,
    takeMinable: () => {
      const taken: ScriptedTransaction[] = []
      for (const { from } of [...pool.values()])
        for (let nonce = countOf(from); ; nonce++) {
          const one = pool.get(nameOf({ from, nonce }))
          if (!one) break
          pool.delete(nameOf(one))
          taken.push({ hash: one.hash, payer: from, nonce, fee: 1n })
        }
      return taken
    },
    chainId: async (signal) => {
      await pass(signal)
      return 1n
    },
    transactionCount: async (from, at, signal) => {
      await pass(signal)
      let count = countOf(from)
      while (at === 'pending' && pool.has(nameOf({ from, nonce: count }))) count++
      return count
    },
    gasPrice: async (signal) => {
      await pass(signal)
      return gasPrice
    },
    balance: async (from, signal) => {
      await pass(signal)
      return fundsOf(from)
    },
    blockLimits: async (signal) => {
      await pass(signal)
      return { gas_limit: 30_000_000n, base_fee: 1n }
    },
    intrinsicGas,
    estimate: async (_, signal) => {
      await pass(signal)
      return { ok: true, gas: 21_000n }
    },
    explainPayment: async () => undefined,
    broadcast: async (raw, hash) => {
      const key = toHex(hash)
      handovers.set(key, (handovers.get(key) ?? 0) + 1)
      const { parseTransaction, recoverTransactionAddress } = await import('viem')
      const serializedTransaction = toHex(raw) as `0x${string}`
      const parsed = parseTransaction(serializedTransaction)
      const { nonce = 0, gasPrice: gas_price = 0n, gas = 0n, value = 0n } = parsed
      const from = await recoverTransactionAddress({
        serializedTransaction: serializedTransaction as never,
      })
      const one = { from: Buffer.from(from.slice(2), 'hex'), nonce, hash, gas_price }
      const answer = answers.shift()
      const isPoor = fundsOf(one.from) < value + gas * gas_price && !pool.has(nameOf(one))
      if (isPoor && countOf(one.from) <= nonce && !(answer?.handover instanceof Error))
        return { kind: 'refused', detail: 'insufficient funds for gas * price + value' }
      if (!answer) return take(one)
      if (answer.isTaken && !isPoor) take(one)
      if (answer.handover instanceof Error) throw answer.handover
      return answer.handover
    },
    findBlockOf: async (hash, signal) => {
      await pass(signal)
      return sentUpTo(canonical().length).find((one) => one.hash().equals(hash))?.block.number
    },
    findNonceUse: async ({ from, nonce, upTo }, signal) => {
      await pass(signal)
      const found = sentUpTo(upTo).find((one) => one.nonce === nonce && one.from.equals(from))
      return found && { hash: found.hash(), block: found.block, failed: found.failed }
    },
  }
}
