import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import type { Chain, Tracked } from '../src/chains/chain.ts'
import { createPolkadotChain } from '../src/chains/polkadot/chain.ts'
import { createSuiChain } from '../src/chains/sui/chain.ts'
import { createTonChain } from '../src/chains/ton/chain.ts'
import { createByteSet } from '../src/lib/bytes.ts'
import { median, table, writeSection } from './lib/results.ts'

// What verification costs while catching up, per family: CPU of the process that follows, database excluded.
const { values } = parseArgs({
  options: {
    blocks: { type: 'string', default: '60' },
    payments: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '5' },
  },
})
const [blocks, rounds] = [Number(values.blocks), Number(values.rounds)]
const command = `node bench/verification.ts ${process.argv.slice(2).join(' ')}`.trim()
const never = new AbortController().signal

type Way = { name: string; open(): Chain }
type Node = { first: number; receiver: string; ways: Way[]; stop(): void }

/** What the other process says of its node; relay and lite server where the family has them. */
type Said = {
  first: number
  receiver: string
  url: string
  lite: { url: string; key: string }
  relay: string
  para_id: number
  trusted: string
}

/** Starts a node in another process. */
const start = async (family: string, waysOf: (said: Said) => Way[]): Promise<Node> => {
  const program = join(import.meta.dirname, 'verification-node.ts')
  const child = spawn(process.execPath, [program, family, values.blocks, values.payments], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  process.once('exit', () => child.kill('SIGKILL'))
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const said = JSON.parse(line) as Said
  const stop = () => child.kill('SIGKILL')
  return { first: said.first, receiver: said.receiver, ways: waysOf(said), stop }
}

/** Catches up once; CPU milliseconds per block. */
const catchUp = async (chain: Chain, { first, receiver }: Node): Promise<number> => {
  const strangers = Array.from({ length: 1_000 }, (_, number) => {
    const account = Buffer.alloc(receiver.length / 2, 0xa5)
    account.writeUInt32BE(number, 4)
    return account
  })
  const tracked: Tracked = {
    accounts: createByteSet([...strangers, Buffer.from(receiver, 'hex')]),
    contracts: createByteSet([]),
    tokenAccount: () => [],
  }
  const after = (await chain.header(first, never))!
  const begun = process.cpuUsage()
  let [taken, movements] = [0, 0]
  for await (const event of chain.follow(after, never)) {
    if (event.kind !== 'blocks') throw new Error(event.kind)
    for (const block of event.blocks) {
      for (const _ of block.accounts(tracked.contracts)) taken += 0
      if (block.needsCheck?.(tracked)) await block.check!(tracked, never)
      movements += block.decode(tracked).movements.length
      taken++
    }
    if (taken >= blocks) break
  }
  const { user, system } = process.cpuUsage(begun)
  if (movements === 0) throw new Error('no payment was found')
  return (user + system) / 1_000 / taken
}

const hex = (text: string): Buffer => Buffer.from(text, 'hex')
const families: [name: string, node: () => Promise<Node>][] = [
  [
    'T',
    () =>
      start('ton', ({ url, lite, trusted }) => {
        const [seqno, root, file] = trusted.split(':')
        const upstreams = [{ url: lite.url, key: Buffer.from(lite.key, 'base64') }]
        const id = { workchain: -1, shard: 1n << 63n, seqno: Number(seqno) }
        const key_block = { ...id, root_hash: hex(root!), file_hash: hex(file!) }
        return [
          { name: 'HTTP, structural', open: () => createTonChain({ upstreams: [{ url }] }) },
          { name: 'lite server, structural', open: () => createTonChain({ upstreams }) },
          {
            name: 'lite server, full',
            open: () => createTonChain({ upstreams, verification: 'full', trusted: key_block }),
          },
        ]
      }),
  ],
  [
    'S',
    () =>
      start('sui', ({ url }) =>
        (['structural', 'full'] as const).map((verification) => ({
          name: verification,
          open: () => createSuiChain({ upstreams: [{ url }], verification }),
        })),
      ),
  ],
  [
    'P',
    () =>
      start('polkadot', ({ url, relay, para_id, trusted }) => {
        const upstreams = [{ url }]
        const [number, hash] = trusted.split(':')
        const proved = {
          relay: [{ url: relay }],
          paraId: para_id,
          trusted: { number: Number(number), hash: hash! },
        }
        return [
          { name: 'structural', open: () => createPolkadotChain({ upstreams }) },
          { name: 'full', open: () => createPolkadotChain({ upstreams, verification: 'full' }) },
          {
            name: 'full, with the relay chain',
            open: () => createPolkadotChain({ upstreams, verification: 'full', ...proved }),
          },
        ]
      }),
  ],
]

const rows: string[][] = []
for (const [family, open] of families) {
  const node = await open()
  const figures = node.ways.map((): number[] => [])
  // One round to warm up, then the ways in turn: other work on the machine meets them alike.
  for (let round = -1; round < rounds; round++)
    for (const [index, way] of node.ways.entries()) {
      const chain = way.open()
      const figure = await catchUp(chain, node)
      await chain.stop()
      if (round >= 0) figures[index]!.push(figure)
    }
  const base = median(figures[0]!)
  for (const [index, { name }] of node.ways.entries()) {
    const figure = median(figures[index]!)
    rows.push([family, name, figure.toFixed(2), (figure / base).toFixed(2)])
  }
  node.stop()
}
await writeSection(
  'Verification while catching up',
  command,
  `${blocks} blocks of ${values.payments} payments on development nodes in another process; 1,001 tracked accounts, of which every block pays one. CPU of the process that follows, database excluded; median of ${rounds} rounds in turn. Structural verification cannot be switched off: it is part of the first figure of each family.

${table(['family', 'verification', 'CPU ms per block', 'of the first'], rows)}`,
)
process.exit(0)
