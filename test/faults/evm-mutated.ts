// Blocks of EVM chains with logs of every malformed kind that a contract can emit: topics and data of any length and any
// value. Checks that every block can be decoded, and that no record of another log or transaction is lost.
// `--blocks 10000 --seed 1`. There is no recorded block with receipts, so that the blocks are generated.
import type { ChainBlock, Movement, Tracked } from '../../src/chains/chain.ts'
import { createBlock } from '../../src/chains/evm/block/block.ts'
import { readBlock } from '../../src/chains/evm/codec/header.ts'
import { batchTopic, singleTopic, transferTopic } from '../../src/chains/evm/codec/topics.ts'
import { evmFamily } from '../../src/chains/evm/family.ts'
import {
  addressOf,
  type StubTransaction,
  stubBlock,
  wordOf,
} from '../../src/chains/evm/testing/stub-chain.ts'
import { createRandom } from '../helpers/random.ts'
import { readNumbers } from './program.ts'

/** What a run came to. */
export type MutatedOutcome = Record<'blocks' | 'logs' | 'damaged' | 'movements' | 'kept', number>

type Log = { address: string; topics: string[]; data: string }

const perBlock = 8
const logsPer = 3
const everyone: Tracked = {
  accounts: { has: () => true, size: 1 },
  contracts: { has: () => true, size: 1 },
  tokenAccount: () => [],
}
const silent: Log = { address: addressOf(0xee), topics: [], data: '0x' }

const blockOf = (transactions: StubTransaction[]): ChainBlock => {
  const { block, receipts, number } = stubBlock(transactions)
  const rules = { proof: 'root' as const, unproven_types: new Set<number>() }
  return createBlock({
    block: readBlock(block, { number, rules: rules })!,
    receipts,
    native: evmFamily.native,
    internal: { transfers: [] },
  })
}
const keyOf = ({ ordinal, from, to, value, asset }: Movement): string =>
  [ordinal, from.toString('hex'), to.toString('hex'), value, asset.token_id].join()

/** Runs that many blocks; throws where a record is lost or a block cannot be decoded. */
export function runMutated({ blocks, seed }: { blocks: number; seed: number }): MutatedOutcome {
  const random = createRandom(seed)
  const pick = (most: number): number => Math.floor(random() * most)
  const hex = (length: number): string =>
    `0x${Array.from({ length }, () => pick(256).toString(16).padStart(2, '0')).join('')}`
  const party = () => addressOf(1 + pick(20))
  const honest = (): Log => {
    const address = addressOf(0xc0 + pick(3))
    const [from, to, value] = [wordOf(party()), wordOf(party()), wordOf(1 + pick(1_000))]
    if (random() < 0.6) return { address, topics: [transferTopic, from, to], data: value }
    if (random() < 0.5) return { address, topics: [transferTopic, from, to, value], data: '0x' }
    const id = wordOf(pick(50)).slice(2)
    const topics = [singleTopic, wordOf(party()), from, to]
    return { address, topics, data: `0x${id}${value.slice(2)}` }
  }
  const topic = () => [transferTopic, singleTopic, batchTopic, hex(32)][pick(4)]!
  const damage = (log: Log): Log => {
    const topics = Array.from({ length: pick(5) }, (_, at) => (at === 0 ? topic() : hex(32)))
    switch (pick(5)) {
      case 0:
        return { ...log, topics }
      case 1:
        return { ...log, data: hex(pick(200)) }
      case 2:
        return { ...log, topics: log.topics.slice(0, pick(4)) }
      case 3:
        // Offsets and lengths of lists that point anywhere.
        return { ...log, topics: [topic(), ...topics.slice(1)], data: hex(32 * pick(12)) }
      default:
        return { ...log, topics, data: `0x${'f'.repeat(2 * pick(300))}` }
    }
  }
  const outcome = { blocks: 0, logs: 0, damaged: 0, movements: 0, kept: 0 }
  for (; outcome.blocks < blocks; outcome.blocks++) {
    const parties = Array.from({ length: perBlock }, () => ({ from: party(), to: party() }))
    const logs = parties.map(() => Array.from({ length: logsPer }, honest))
    const isDamaged = logs.map((of) => of.map(() => random() < 0.3))
    const withLogs = (change: (log: Log) => Log) =>
      parties.map((one, at) => ({
        ...one,
        value: BigInt(1 + at),
        logs: logs[at]!.map((log, index) => (isDamaged[at]![index] ? change(log) : log)),
      })) as StubTransaction[]
    const wanted = blockOf(withLogs(() => silent))
      .decode(everyone)
      .movements.map(keyOf)
    const block = blockOf(withLogs(damage))
    if ([...block.accounts(everyone.contracts)].length === 0) throw new Error('no account')
    const { movements } = block.decode(everyone)
    const given = new Set(movements.map(keyOf))
    const lost = wanted.find((key) => !given.has(key))
    if (lost) throw new Error(`seed ${seed}, block ${outcome.blocks}: lost ${lost}`)
    outcome.logs += perBlock * logsPer
    outcome.damaged += isDamaged.flat().filter(Boolean).length
    outcome.movements += movements.length
    outcome.kept += wanted.length
  }
  return outcome
}

if (import.meta.main) {
  const started = performance.now()
  const outcome = runMutated(readNumbers({ blocks: 10_000, seed: 1 }))
  console.log(JSON.stringify({ ...outcome, ms: Math.round(performance.now() - started) }))
}
