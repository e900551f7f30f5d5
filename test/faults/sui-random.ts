import { SUI } from '../../devnet/sui/coins.ts'
import { startSuiNode } from '../../devnet/sui/node.ts'
import { createSuiChain } from '../../src/chains/sui/chain.ts'
import { suiFamily } from '../../src/chains/sui/family.ts'
import { decodeBase58, encodeBase58 } from '../../src/lib/base58.ts'
import { createByteSet } from '../../src/lib/bytes.ts'
import { createRandom } from '../helpers/random.ts'
import { readNumbers } from './program.ts'
import { createTraffic } from './sui-traffic.ts'

/** What a run came to. */
export type RandomOutcome = {
  transactions: number
  records: number
  failed: number
  refunds: number
  fees: number
  sponsored: number
}

const everyone = {
  accounts: { has: (bytes: Uint8Array) => bytes.length > 0, size: 0 },
  contracts: createByteSet([]),
  tokenAccount: () => [],
}

/**
 * Runs random transactions on a dev node and follows them over gRPC. What all accounts had at the
 * beginning, with all records and the fees that they count, must be what all accounts have at the end.
 */
export async function runSuiRandom(options: {
  count: number
  seed: number
}): Promise<RandomOutcome> {
  const { count, seed } = options
  const retain = { checkpoints: 50_000, transactions: 50_000 }
  const node = await startSuiNode({ seed, retain })
  const { ledger } = node
  const chain = createSuiChain({ upstreams: [{ url: node.url }] })
  const traffic = createTraffic(node, {
    random: createRandom(seed),
    receivers: Array.from({ length: 12 }, (_, i) =>
      i < 9 ? node.key(i + 1).toSuiAddress() : `0x${Buffer.alloc(32, i).toString('hex')}`,
    ),
  })
  const sums = new Map<string, bigint>()
  const add = (owner: string, type: string, amount: bigint) =>
    sums.set(`${owner} ${type}`, (sums.get(`${owner} ${type}`) ?? 0n) + amount)
  const tally = (sign: bigint) => {
    for (const { owner, type, balance } of ledger.sealed.coins()) add(owner, type, sign * balance)
    for (const [owner, type, amount] of ledger.sealed.funds()) add(owner, type, sign * amount)
  }
  const outcome: RandomOutcome = {
    ...{ transactions: 0, records: 0, failed: 0, refunds: 0, fees: 0, sponsored: 0 },
  }
  let bills = 0
  const stopping = new AbortController()
  const follow = async () => {
    const after = { number: 0, hash: decodeBase58(ledger.chainId)! }
    for await (const event of chain.follow(after, stopping.signal)) {
      if (event.kind !== 'blocks') throw new Error(event.kind)
      for (const block of event.blocks) {
        const { movements, unknown_kinds } = block.decode(everyone)
        if (Object.keys(unknown_kinds ?? {}).length > 0) throw new Error('something unknown')
        for (const movement of movements) {
          const { from, to, asset, value, transaction_hash, failed } = movement
          const type = suiFamily.formatToken!(asset.contract_address) || SUI
          // Fees are counted by the records alone, once for each transaction.
          if (movement.detail?.pays_fee) {
            add(suiFamily.formatAddress(from), SUI, -movement.transaction_fee)
            outcome.fees++
          }
          if (from.length > 0) add(suiFamily.formatAddress(from), type, -value)
          if (to.length > 0) add(suiFamily.formatAddress(to), type, value)
          outcome.records++
          if (failed) outcome.failed++
          if (!ledger.find(encodeBase58(transaction_hash))) throw new Error('no such transaction')
        }
        for (const digest of ledger.history.at(block.number)!.digests) {
          const { transaction, effects } = ledger.find(digest)!
          const { computationCost = 0n, storageCost = 0n, storageRebate = 0n } = effects!.gasUsed!
          const gas = computationCost + storageCost - storageRebate
          if (gas < 0n) outcome.refunds++
          if (gas > 0n) bills++
          if (transaction!.gasPayment!.owner !== transaction!.sender) outcome.sponsored++
          outcome.transactions++
        }
        if (outcome.transactions === count) return
      }
    }
  }
  tally(1n)
  const following = follow()
  for (let sent = 0; sent < count; sent++) {
    await traffic.send()
    if (traffic.chance(0.1) || sent === count - 1) ledger.seal()
  }
  await following
  tally(-1n)
  const left = [...sums].filter(([, sum]) => sum !== 0n)
  await chain.stop()
  await node.stop()
  if (outcome.fees !== bills) throw new Error(`seed ${seed}: ${outcome.fees} fees of ${bills}`)
  if (left.length > 0)
    throw new Error(`seed ${seed}: ${left.map(([key, sum]) => `${key} differs by ${sum}`).join()}`)
  return outcome
}

if (import.meta.main) {
  const options = readNumbers({ count: 20_000, seed: 1 })
  console.log(
    'records and their fees are the balance changes of all accounts:',
    await runSuiRandom(options),
  )
}
