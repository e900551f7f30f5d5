import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createSuiChain } from '../src/chains/sui/chain.ts'
import { decodeBase58 } from '../src/lib/base58.ts'
import { createByteSet } from '../src/lib/bytes.ts'
import { median, table, writeSection } from './lib/results.ts'

const perCheckpoint = 50
const rounds = 3

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

type Run = { addresses: number; perSecond: number; checkpoints: number }
type Figures = { microseconds: number; share: number; records: number; bytes: number }

const addressOf = (number: number): Buffer =>
  Buffer.from(`7${number.toString(16).padStart(63, '0')}`, 'hex')

/** Follows a stream of that many checkpoints and makes the records of the tracked addresses. */
async function run({ addresses, perSecond, checkpoints }: Run): Promise<Figures> {
  const server = spawn(
    process.execPath,
    [join(import.meta.dirname, 'sui-server.ts'), String(checkpoints), String(perSecond)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const [line] = (await once(createInterface({ input: server.stdout }), 'line')) as [string]
  const { port, genesis, bytes } = JSON.parse(line) as {
    port: number
    genesis: string
    bytes: number
  }
  const tracked = {
    // One in fifty of the addresses in the stream, and any number that never appear in it.
    accounts: createByteSet(
      Array.from({ length: addresses }, (_, index) => addressOf(index * 100)),
    ),
    contracts: createByteSet([]),
    tokenAccount: () => [],
  }
  // What making a million addresses leaves behind is not the stream's: it was half of a short run.
  collectGarbage()
  const chain = createSuiChain({ upstreams: [{ url: `http://127.0.0.1:${port}` }] })
  const stopping = new AbortController()
  let records = 0
  let candidates = 0
  let before = process.cpuUsage()
  let begun = performance.now()
  let first = 0
  let last = 0
  try {
    const after = { number: 0, hash: decodeBase58(genesis)! }
    for await (const event of chain.follow(after, stopping.signal)) {
      if (event.kind !== 'blocks') throw new Error(event.kind)
      if (first === 0) {
        // Connecting and compiling are not the stream.
        before = process.cpuUsage()
        begun = performance.now()
        first = event.blocks.at(-1)!.number
      }
      for (const block of event.blocks) {
        for (const _ of block.accounts(tracked.contracts)) candidates++
        records += block.decode(tracked).movements.length
      }
      last = event.blocks.at(-1)!.number
      if (last === checkpoints) break
    }
    const { user, system } = process.cpuUsage(before)
    const transactions = (last - first) * perCheckpoint
    const elapsed = (performance.now() - begun) * 1_000
    if (candidates === 0) throw new Error('nothing was looked at')
    return {
      microseconds: (user + system) / transactions,
      share: (user + system) / elapsed,
      records,
      bytes,
    }
  } finally {
    await chain.stop()
    server.kill('SIGKILL')
  }
}

const repeat = async (what: Run): Promise<Figures> => {
  const all: Figures[] = []
  for (let round = 0; round < rounds; round++) all.push(await run(what))
  const middle = (key: keyof Figures) => median(all.map((one) => one[key]))
  return {
    microseconds: middle('microseconds'),
    share: middle('share'),
    records: middle('records'),
    bytes: middle('bytes'),
  }
}

// Once for the compiler.
await run({ addresses: 1_000, perSecond: 10_000, checkpoints: 200 })
const rows: (string | number)[][] = []
for (const addresses of [1_000, 100_000, 1_000_000]) {
  const fast = await repeat({ addresses, perSecond: 10_000, checkpoints: 600 })
  rows.push([
    addresses.toLocaleString('en'),
    '10,000',
    fast.records,
    fast.bytes.toFixed(0),
    fast.microseconds.toFixed(1),
    `${(fast.share * 100).toFixed(0)} %`,
  ])
}
const slow = await repeat({ addresses: 1_000_000, perSecond: 1_000, checkpoints: 300 })
rows.push([
  '1,000,000',
  '1,000',
  slow.records,
  slow.bytes.toFixed(0),
  slow.microseconds.toFixed(1),
  `${(slow.share * 100).toFixed(0)} %`,
])
await writeSection(
  'Following Sui',
  'npm run bench -- sui',
  `One stream of checkpoints over native gRPC, 50 transactions each with 3 balance changes, from another process to the
records of the tracked addresses; without the database. Median of ${rounds} runs. To hold: at most 60 µs of CPU for a
transaction, the same with any number of tracked addresses, and under 20 % of a core at 1,000 transactions a second.

${table(
  [
    'tracked addresses',
    'transactions a second',
    'records',
    'bytes a transaction',
    'CPU µs a transaction',
    'of a core',
  ],
  rows,
)}
`,
)
process.exit(0)
