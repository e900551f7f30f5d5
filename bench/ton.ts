import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Address, internal } from '@ton/core'
import { createPurse, type Purse } from '../devnet/ton/purse.ts'
import type { ChainBlock, Position, Tracked } from '../src/chains/chain.ts'
import { createTonChain } from '../src/chains/ton/chain.ts'
import { createByteSet } from '../src/lib/bytes.ts'
import { median, table, writeSection } from './lib/results.ts'

// The node is a process of its own: only what the service does is counted.
const main = new URL('../devnet/ton/main.ts', import.meta.url).pathname
const node = spawn(process.execPath, [main, '--block-time-ms', '0'], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
process.once('exit', () => node.kill('SIGKILL'))
const [line] = await once(createInterface({ input: node.stdout }), 'line')
const { node_url } = JSON.parse(String(line)) as { node_url: string }

const post = async (url: string, body: object): Promise<void> => {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) })
  const answer = (await response.json()) as { ok: boolean; error?: string }
  if (!answer.ok) throw new Error(answer.error)
}
const dev = (method: string, body: object = {}) =>
  post(node_url.replace('/api/v2', `/dev/${method}`), body)

const purses = Array.from({ length: 4 }, (_, index) => createPurse(Buffer.alloc(32, index + 1)))
const seqnos = new Map<Purse, number>()
for (const { address } of purses)
  await dev('fund', { address: address.toRawString(), amount: '1000000000000000' })

/** Lets a purse pay many accounts in the next block but one; where they are. */
const scatter = async (purse: Purse, count: number): Promise<Address[]> => {
  const seqno = seqnos.get(purse) ?? 0
  seqnos.set(purse, seqno + 1)
  const to = Array.from({ length: count }, () => new Address(0, randomBytes(32)))
  const messages = to.map((address) => ({
    message: internal({ to: address, value: 1_000_000n, bounce: false, body: 'payment' }),
  }))
  const boc = purse.order(seqno, messages).toString('base64')
  await post(`${node_url}/jsonRPC`, { method: 'sendBoc', params: { boc } })
  return to
}

const chain = createTonChain({ upstreams: [{ url: node_url }], pollMs: 20, inFlight: 4 })
const never = new AbortController().signal
const take = async (after: Position, count: number): Promise<ChainBlock[]> => {
  const taken: ChainBlock[] = []
  for await (const event of chain.follow(after, never)) {
    if (event.kind !== 'blocks') throw new Error(event.kind)
    taken.push(...event.blocks)
    if (taken.length >= count) break
  }
  return taken
}
const cpuMs = (since: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1_000
}
const bytesOf = ({ hash }: Address): Buffer => Buffer.concat([Buffer.alloc(1), hash])
const track = (count: number, some: readonly Address[]): Tracked => {
  const strangers = Array.from({ length: count - some.length }, () =>
    Buffer.concat([Buffer.alloc(1), randomBytes(32)]),
  )
  return {
    accounts: createByteSet([...strangers, ...some.map(bytesOf)]),
    contracts: createByteSet([]),
    tokenAccount: () => [],
  }
}

const paid = (await Promise.all(purses.map((purse) => scatter(purse, 250)))).flat()
await dev('mine')
const before = await chain.head(never)
await dev('mine')

const rows: string[][] = []
for (const count of [1_000, 100_000, 1_000_000]) {
  const tracked = track(count, paid.slice(0, 20))
  const times: number[] = []
  let found = 0
  for (let round = 0; round < 15; round++) {
    const begun = process.cpuUsage()
    const [block] = await take(before, 1)
    const named = [...block!.accounts(createByteSet([]))].length
    found = block!.decode(tracked).movements.length
    if (named < 1_000) throw new Error(`only ${named} transactions`)
    if (round >= 5) times.push(cpuMs(begun))
  }
  rows.push([`${count}`, `${found}`, median(times).toFixed(1)])
}

await dev('depth', { depth: 4 })
for (let step = 0; step < 4; step++) {
  await dev('depth', { depth: 4 })
  await dev('mine')
}
const blocks = 40
const tracked = track(100_000, paid.slice(0, 20))
const begin = await chain.head(never)
for (let block = 0; block < blocks; block++) {
  await scatter(purses[block % purses.length]!, 250)
  await dev('mine')
}
const begun = process.cpuUsage()
let transactions = 0
for (const block of await take(begin, blocks)) {
  transactions += [...block.accounts(createByteSet([]))].length
  block.decode(tracked)
}
const perBlock = cpuMs(begun) / blocks
await chain.stop()

await writeSection(
  'TON',
  'node bench/ton.ts',
  [
    'CPU of the process that follows, database excluded: requests over HTTP, reading, finding, decoding and proving what concerns tracked addresses. A masterchain block with 1,000 transactions in one shard, of which 20 are tracked; median of 10 (goal: 40 ms, and flat).',
    '',
    table(['tracked addresses', 'transfers found', 'CPU ms per block'], rows),
    '',
    `At 16 shards and ${Math.round(transactions / blocks)} transactions per masterchain block: ${perBlock.toFixed(1)} ms CPU per block, which is ${(perBlock * 0.25).toFixed(0)} % of a core at 2.5 blocks per second (goal: 50 %).`,
  ].join('\n'),
)
process.exit(0)
