// Contracts of strangers beside honest accounts: whatever a jetton wallet gives, the balances of the others are read, and no
// node is distrusted or left alone for it. `--rounds 200 --seed 1`.

import { beginCell, Cell, contractAddress, internal } from '@ton/core'
import { startLiteServer } from '../../devnet/ton/lite-server.ts'
import { startTonDevChain } from '../../devnet/ton/ton-dev-chain.ts'
import type { BalanceQuery, Chain } from '../../src/chains/chain.ts'
import { createTonChain } from '../../src/chains/ton/chain.ts'
import { bytesOf, createPayer, fundPayers } from '../chains/ton/ton-payers.ts'
import { createRandom } from '../helpers/random.ts'
import { readNumbers } from './program.ts'

/** What a run came to. */
export type ContractsOutcome = { contracts: number; unreadable: number; honest: number }

// Instructions of the virtual machine (docs.ton.org/tvm/instructions), each without operands on the stack.
const values = {
  continuation: '90',
  nan: '83ff',
  null: '6d',
  number: '77',
  largest: '84ff',
  negative: '7f',
  tuple: '6f00',
  nested: '6f006f016f016f01',
  builder: 'c8',
  cell: 'c8c9',
  slice: 'c8c9d0',
  // NEWC ENDC, and 40 times DUP NEWC STREF STREF ENDC: a cell that names itself 2^40 times when it is written out.
  tree: 'c8c980289520c8ccccc9e4',
} as const
type Value = keyof typeof values

// What needs no value: 2,000 of them, a throw, and a loop without an end.
const ends = { many: '8107d0916de4', throws: 'f221', endless: '90ea' } as const

// DUP IFNOTRET: a message changes nothing. DEPTH DROPX: what came with the question.
const start = '20dd6865'

/** The code of a contract that answers any question in the same way. */
export const codeOf = (program: string): Cell =>
  beginCell()
    .storeBuffer(Buffer.from(start + program, 'hex'))
    .endCell()

/** The named ones, each alone, and as the first of three values. */
const named: readonly string[] = [
  ...Object.entries(values).flatMap(([name, code]) =>
    name === 'number' || name === 'largest' ? [] : [code, code + values.number + values.cell],
  ),
  ...Object.values(ends),
  '',
]

const randomProgram = (random: () => number): string => {
  const names = Object.keys(values) as Value[]
  const pick = <item>(items: readonly item[]): item => items[Math.floor(random() * items.length)]!
  const body = Array.from({ length: Math.floor(random() * 6) }, () => values[pick(names)]).join('')
  return random() < 0.2 ? body + pick(Object.values(ends)) : body
}

/** Reads honest accounts together with hostile ones, over HTTP and from a lite server. */
export async function runContracts({
  rounds,
  seed,
}: {
  rounds: number
  seed: number
}): Promise<ContractsOutcome> {
  const random = createRandom(seed)
  const dev = await startTonDevChain({ blockTimeMs: 0, startTime: 1_800_000_000 })
  const payer = createPayer(dev, 1)
  await fundPayers(dev, [payer])
  const jetton = await dev.deployJetton({ name: 'Honest', symbol: 'HON', decimals: 6 })
  await jetton.mint(payer.address, 1_234n)
  const programs = [...named, ...Array.from({ length: rounds }, () => randomProgram(random))]
  const deployed = new Map<string, Buffer>()
  const coded = new Set<string>()
  for (const program of programs) {
    if (coded.has(program)) continue
    coded.add(program)
    const init = { code: codeOf(program), data: Cell.EMPTY }
    const to = contractAddress(0, init)
    await payer.send(internal({ to, value: 100_000_000n, bounce: false, init }))
    await dev.mine(1)
    deployed.set(program, bytesOf(to))
  }
  await dev.mine(4)
  const lite = await startLiteServer(dev.chain, { globalId: -3 })
  const nodes = [
    { url: dev.node_url, v3: false },
    { url: `tcp://${lite.host}:${lite.port}`, key: lite.key },
  ]
  const outcome: ContractsOutcome = { contracts: deployed.size, unreadable: 0, honest: 0 }
  try {
    for (const node of nodes) {
      const chain = createTonChain({ upstreams: [node] })
      try {
        const read = await readAll(chain, {
          deployed,
          payer: payer.bytes,
          jetton,
          coins: balanceOf,
        })
        outcome.unreadable += read.unreadable
        outcome.honest += read.honest
      } finally {
        await chain.stop()
      }
    }
  } finally {
    await lite.stop()
    await dev.stop()
  }
  return outcome

  function balanceOf(): bigint {
    return dev.chain.account(payer.text).balance
  }
}

async function readAll(
  chain: Chain,
  world: {
    deployed: ReadonlyMap<string, Buffer>
    payer: Buffer
    jetton: Awaited<ReturnType<Awaited<ReturnType<typeof startTonDevChain>>['deployJetton']>>
    coins(): bigint
  },
): Promise<{ unreadable: number; honest: number }> {
  const signal = AbortSignal.timeout(300_000)
  const { deployed, payer: address, jetton } = world
  const at = await chain.head(signal)
  const tokenOf = (contract_address: Buffer) => ({ ...chain.native, contract_address })
  const hostile = [...deployed].map(([program, contract]) => ({ program, contract }))
  const honest: [BalanceQuery, bigint][] = [
    [{ address, asset: chain.native }, world.coins()],
    [{ address, asset: tokenOf(bytesOf(jetton.master)) }, 1_234n],
  ]
  const queries = [
    ...honest.map(([query]) => query),
    // As a jetton wallet, and as a master that is asked for one.
    ...hostile.flatMap(({ contract }): BalanceQuery[] => [
      { address, asset: tokenOf(contract), token_account_address: contract },
      { address: contract, asset: tokenOf(contract) },
    ]),
    ...honest.map(([query]) => query),
  ]
  const read = await chain.readBalances(queries, at, signal)
  for (const [place, [, balance]] of [...honest, ...honest].entries()) {
    const found = read.at(place < honest.length ? place : place - 2 * honest.length)!.balance
    if (found !== balance) throw new Error(`an honest balance of ${balance} is ${found}`)
  }
  const places = read.slice(honest.length, -honest.length)
  for (const [place, { balance }] of places.entries())
    if (balance !== null && (balance < 0n || balance >= 1n << 256n))
      throw new Error(`${hostile[place >> 1]!.program} has ${balance}`)
  for (const { contract, program } of hostile) {
    const token = { asset_type: chain.native.asset_type, token_address: contract } as const
    const check = await chain.tokens!.verifyToken!(token, signal)
    if (check.ok) continue
    if (check.field !== 'token_address') throw new Error(`${program}: ${check.detail}`)
  }
  const [node] = chain.status!().upstreams!
  if (node!.state !== 'healthy' || node!.error_rate > 0)
    throw new Error(`the node is ${JSON.stringify(node)}`)
  return { unreadable: places.filter(({ balance }) => balance === null).length, honest: 4 }
}

if (import.meta.main) console.log(await runContracts(readNumbers({ rounds: 200, seed: 1 })))
