import { keyBytes, toHex } from '../../devnet/polkadot/bytes.ts'
import { accountKey } from '../../devnet/polkadot/spec.ts'
import { never, refOf, startHarness } from '../chains/polkadot/harness.ts'
import { createRandom } from '../helpers/random.ts'
import { readNumbers } from './program.ts'

/** What a run came to. */
export type AccountsOutcome = { readings: number; unreadable: number; intact: number }

const accounts = 12

/** Bytes as a migration of a runtime, or a node, could leave them: cut, longer, changed, or none that can be read. */
function damage(value: string, random: () => number): string {
  const pick = (below: number) => Math.floor(random() * below)
  const kind = pick(5)
  if (kind === 0) return value.slice(0, 2 + 2 * pick((value.length - 2) / 2))
  if (kind === 1) return '0x'
  if (kind === 2) return `${value}${'ff'.repeat(1 + pick(64))}`
  if (kind === 3) return `0x${'zz'.repeat(1 + pick(40))}`
  return `0x${Array.from({ length: pick(160) }, () => pick(16).toString(16)).join('')}`
}

/** Reads balances of which some are damaged. All others must be what they are. */
export async function runAccounts({
  rounds,
  seed,
}: {
  rounds: number
  seed: number
}): Promise<AccountsOutcome> {
  const random = createRandom(seed)
  const node = await startHarness()
  node.mine(3)
  const chain = node.openChain()
  const numbers = Array.from({ length: accounts }, (_, number) => number)
  const placeOf = (number: number) => toHex(keyBytes(accountKey(node.account(number))))
  const queries = numbers.map((number) => ({ address: node.account(number), asset: chain.native }))
  const at = refOf(node.chain.final())
  const outcome: AccountsOutcome = { readings: 0, unreadable: 0, intact: 0 }
  try {
    const whole = await chain.readBalances(queries, at, never)
    for (let round = 0; round < rounds; round++) {
      const damaged = new Map(
        numbers.filter(() => random() < 0.3).map((number) => [placeOf(number), number]),
      )
      node.server.tamper((method, result) => {
        if (method !== 'state_queryStorageAt') return undefined
        return (result as { changes: [string, string | null][] }[]).map((set) => ({
          ...set,
          changes: set.changes.map(([key, value]) => [
            key,
            value !== null && damaged.has(key) ? damage(value, random) : value,
          ]),
        }))
      })
      const read = await chain.readBalances(queries, at, never)
      for (const [number, { balance }] of read.entries()) {
        outcome.readings++
        if (balance === null) outcome.unreadable++
        const isDamaged = damaged.has(placeOf(number))
        if (isDamaged && (balance === null || balance >= 0n)) continue
        if (balance !== whole[number]!.balance)
          throw new Error(`seed ${seed}, round ${round}: account ${number} has ${balance}`)
        outcome.intact++
      }
      const [upstream] = chain.status!().upstreams!
      if (upstream!.error_rate > 0) throw new Error(`the node is ${JSON.stringify(upstream)}`)
    }
  } finally {
    await chain.stop()
    await node.stop()
  }
  return outcome
}

if (import.meta.main) console.log(await runAccounts(readNumbers({ rounds: 2_000, seed: 1 })))
