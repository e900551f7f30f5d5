import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { getDynamicBuilder, getLookupFn } from '@polkadot-api/metadata-builders'
import { decAnyMetadata, unifyMetadata } from '@polkadot-api/substrate-bindings'
import { callRpc } from '../devnet/anvil/rpc.ts'
import { createPolkadotChain } from '../src/chains/polkadot/chain.ts'
import { createByteSet } from '../src/lib/bytes.ts'
import { median, table, writeSection } from './lib/results.ts'

const { values } = parseArgs({
  options: {
    blocks: { type: 'string', default: '100' },
    transfers: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '5' },
    sizes: { type: 'string', default: '1,1000,1000000' },
  },
})
const [blocks, rounds] = [Number(values.blocks), Number(values.rounds)]
const command = `node bench/polkadot.ts ${process.argv.slice(2).join(' ')}`.trim()
const first = 2

const child = spawn(
  process.execPath,
  [
    join(import.meta.dirname, 'polkadot-node.ts'),
    ...['--blocks', values.blocks, '--transfers', values.transfers],
  ],
  { stdio: ['ignore', 'pipe', 'inherit'] },
)
process.once('exit', () => child.kill('SIGKILL'))
const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
const { node_url, receiver } = JSON.parse(line) as { node_url: string; receiver: string }
const ask = <result>(method: string, ...params: unknown[]) =>
  callRpc<result>(node_url.replace('ws', 'http'), method, params)

/** Blocks per CPU-second of this process. */
const measure = async (work: () => Promise<void> | void): Promise<number> => {
  const begun = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(begun)
  return blocks / ((user + system) / 1e6)
}

// The bare decoder: the library's codec on events that lie in memory, and nothing else.
const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex.slice(2), 'hex'))
const metadata = unifyMetadata(decAnyMetadata(bytes(await ask<string>('state_getMetadata'))))
const codec = getDynamicBuilder(getLookupFn(metadata)).buildStorage('System', 'Events').value
const eventsKey = '0x26aa394eea5630e07c48ae0c9558cef780d41e5e16056765bc8461851072c9d7'
const events: string[] = []
for (let number = first + 1; number <= first + blocks; number++) {
  const hash = await ask<string>('chain_getBlockHash', number)
  events.push(await ask<string>('state_getStorage', eventsKey, hash))
}
const perBlock = (codec.dec(bytes(events[0]!)) as unknown[]).length
const decodeBare = () =>
  measure(() => {
    for (const one of events) codec.dec(bytes(one))
  })

// The whole way: three requests a block over WebSocket, checks, decoding, who is concerned.
const chain = createPolkadotChain({ upstreams: [{ url: node_url }] })
const start = await chain.header(first, new AbortController().signal)
if (!start) throw new Error('the node has no blocks')
const catchUp = (accounts: ReturnType<typeof createByteSet>) =>
  measure(async () => {
    let movements = 0
    for await (const event of chain.follow(start, new AbortController().signal)) {
      if (event.kind !== 'blocks') throw new Error(event.kind)
      for (const block of event.blocks) {
        const named = createByteSet(block.accounts(createByteSet([])))
        if (named.size === 0) throw new Error('no account found')
        movements += block.decode({
          accounts,
          contracts: createByteSet([]),
          tokenAccount: () => [],
        }).movements.length
      }
      if (event.blocks.at(-1)!.number >= first + blocks) break
    }
    if (movements < blocks) throw new Error(`only ${movements} movements`)
  })

const sets = values.sizes.split(',').map((size) => {
  function* accounts() {
    yield Buffer.from(receiver, 'hex')
    for (let number = 1; number < Number(size); number++) {
      const account = Buffer.alloc(32, 0xa5)
      account.writeUInt32BE(number, 28)
      yield account
    }
  }
  return { size, set: createByteSet(accounts()), figures: [] as number[] }
})
const bare: number[] = []
// One round to warm up, then the ways in turn: other work on the machine meets them alike.
for (let round = -1; round < rounds; round++) {
  const figure = await decodeBare()
  if (round >= 0) bare.push(figure)
  for (const { set, figures } of sets) {
    const own = await catchUp(set)
    if (round >= 0) figures.push(own)
  }
}
const base = median(bare)
await writeSection(
  'Polkadot: catching up',
  command,
  `${blocks} blocks of ${values.transfers} transfers (${perBlock} events) of the real Asset Hub runtime, from a node in another process; median of ${rounds} rounds in turn. "Bare decoder" decodes events that lie in memory with polkadot-api's codec and does nothing else. "Catching up" is everything: three requests a block, hashes and links checked, events read, tracked accounts found. Goal: 0.7 of the bare decoder, flat in the number of accounts.

${table(
  ['', 'tracked accounts', 'blocks per CPU-second', 'of the bare decoder'],
  [
    ['bare decoder', '', base.toFixed(0), '1.00'],
    ...sets.map(({ size, figures }) => [
      'catching up',
      Number(size).toLocaleString('en'),
      median(figures).toFixed(0),
      (median(figures) / base).toFixed(2),
    ]),
  ],
)}`,
)
await chain.stop()
child.kill('SIGKILL')
