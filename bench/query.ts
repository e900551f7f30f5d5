import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startAnvil } from '../devnet/anvil/anvil.ts'
import type { ConnectionFile } from '../src/app/connection-file.ts'
import { median, table, writeSection } from './lib/results.ts'
import type { QueryLoad, QuerySample } from './query-load.ts'

const here = import.meta.dirname
const rounds = Number(process.env.ROUNDS ?? 5)
const requests = Number(process.env.REQUESTS ?? 50)
const busy = 32
const perBlock = 20
// What is cached costs its node nothing, so it can be asked for often enough to be steady.
const repeats = 10
const warmUps = 4
// Asked for once and never again, so that the way to the node is as warm as the one to the cache. More
// blocks than some seven hundred make an emulated node slow.
const warmBlocks = 100
const warmTransactions = 300

// Behind Portolan the node rests between two calls for as long as the rest of each takes, and an emulated
// one that has rested answers later: so it is also asked directly after such a rest.
type Way = 'direct' | 'rested' | 'uncached' | 'cached'
const ways: readonly Way[] = ['direct', 'rested', 'uncached', 'cached']
const restMs = 1

const dir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-bench-')))
await chmod(dir, 0o711)
const anvil = await startAnvil({ args: ['--no-mining', '--network', 'optimism'] })
const coin = JSON.parse(
  await readFile(new URL('../devnet/contracts/tokens.json', import.meta.url), 'utf8'),
).contracts.Coin as { bytecode: string }

/** Several calls in one request: an emulated anvil takes three times as long for single ones. */
async function callBatch(calls: { method: string; params: unknown[] }[]): Promise<string[]> {
  const body = JSON.stringify(calls.map((call, id) => ({ jsonrpc: '2.0', id, ...call })))
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(anvil.url, { method: 'POST', headers, body })
  return ((await response.json()) as { result: string }[]).map(({ result }) => result)
}

/** A chain with as many transactions of twenty logs, and final blocks, as are asked for once. */
async function fillChain(): Promise<{ hashes: string[]; firstBlock: number }> {
  const measured = requests * rounds * 2
  const [from] = await anvil.call<string[]>('eth_accounts')
  const gas = '0xf4240'
  const made = await anvil.call('eth_sendTransaction', [{ from, data: coin.bytecode, gas }])
  await anvil.call('evm_mine')
  const firstBlock = Number(await anvil.call('eth_blockNumber')) + 1
  const { contractAddress: to } = await anvil.call<{ contractAddress: string }>(
    'eth_getTransactionReceipt',
    [made],
  )
  // spray(address first, uint256 count, uint256 value): twenty logs.
  const data = `0x6f420100${['01', '14', '00'].map((word) => word.padStart(64, '0')).join('')}`
  const hashes: string[] = []
  while (hashes.length < warmTransactions + measured) {
    const sent = Array.from({ length: perBlock }, (_, at) => {
      const nonce = `0x${(1 + hashes.length + at).toString(16)}`
      return { method: 'eth_sendTransaction', params: [{ from, to, data, gas, nonce }] }
    })
    hashes.push(...(await callBatch(sent)))
    await anvil.call('evm_mine')
  }
  // All that is asked for is final.
  const end = firstBlock + warmBlocks + measured + 80
  while (Number(await anvil.call('eth_blockNumber')) < end) await anvil.call('anvil_mine', ['0x14'])
  return { hashes, firstBlock }
}

const child = () =>
  spawn(process.execPath, [join(here, '../bin/portolan.js'), 'start'], {
    env: {
      ...process.env,
      CI: 'true',
      PORTOLAN_PORT: '0',
      PORTOLAN_SERVER__WORKERS: '1',
      PORTOLAN_DATA_DIR: join(dir, 'data'),
      PORTOLAN_LOGGING__LEVEL: 'info',
      PORTOLAN_CHAINS__Q: JSON.stringify({
        networks: { mainnet: { upstreams: [{ url: anvil.url }] } },
      }),
      PORTOLAN_LIMITS__PER_SECOND_LIMIT: '1000000',
      PORTOLAN_LIMITS__PER_HOUR_LIMIT: '1000000000',
      PORTOLAN_LIMITS__PER_DAY_LIMIT: '1000000000',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })

const { hashes, firstBlock } = await fillChain()
const service = child()
await new Promise<void>((resolve, reject) => {
  service.once('exit', () => reject(new Error('Portolan did not start')))
  service.stdout!.on('data', (chunk) => String(chunk).includes('"started"') && resolve())
})
const connection: ConnectionFile = JSON.parse(
  await readFile(join(dir, 'data', 'connection.json'), 'utf8'),
)

type Subject = {
  name: string
  method: string
  /** How many there are to warm up with. */
  warm: number
  params(index: number): unknown[]
  request(index: number): object
}
const subjects: readonly Subject[] = [
  {
    name: 'GetBlock',
    method: 'eth_getBlockByNumber',
    warm: warmBlocks,
    params: (index) => [`0x${(firstBlock + index).toString(16)}`, false],
    request: (index) => ({ block_number: firstBlock + index }),
  },
  {
    name: 'GetTransaction',
    method: 'eth_getTransactionByHash',
    warm: warmTransactions,
    params: (index) => [hashes[index]],
    request: (index) => ({ transaction_hash: hashes[index] }),
  },
  {
    name: 'ListLogs',
    method: 'eth_getTransactionReceipt',
    warm: warmTransactions,
    params: (index) => [hashes[index]],
    request: (index) => ({ transaction_hash: hashes[index] }),
  },
]

const generator = fork(join(here, 'query-load.ts'))
// Of itself it ends only by a failure, and nothing would ever answer then.
generator.once('exit', (code) => {
  if (code === null) return
  service.kill('SIGTERM')
  process.exit(1)
})
async function measure(load: QueryLoad): Promise<QuerySample> {
  generator.send(load)
  const [sample] = (await once(generator, 'message')) as [QuerySample]
  if (sample.failed > 0) throw new Error(`${sample.failed} requests failed at ${load.path}`)
  return sample
}

/** The things of one round; those before the first are for warming up. */
const partOf = ({ warm }: Subject, part: number): number[] =>
  Array.from({ length: requests }, (_, index) => warm + part * requests + index)

/** One load: everything once, or (cached) what was asked for just before. */
function loadOf(subject: Subject, way: Way, connections: number, indexes: number[]): QueryLoad {
  if (way === 'direct' || way === 'rested') {
    const call = (index: number) => ({
      ...{ jsonrpc: '2.0', id: index, method: subject.method },
      params: subject.params(index),
    })
    const bodies = indexes.map((index) => JSON.stringify(call(index)))
    const rest = way === 'rested' && { restMs }
    return { url: anvil.url, path: '/', connections, bodies, ...rest }
  }
  const bodies = indexes.map((index) => JSON.stringify(subject.request(index)))
  return {
    url: connection.base_url,
    path: `/v1/q/${subject.name}`,
    credential: connection.member!,
    connections,
    bodies: way === 'cached' ? Array.from({ length: repeats }, () => bodies).flat() : bodies,
  }
}

const samples = new Map<string, QuerySample[]>()
const keyOf = (subject: Subject, way: Way, connections: number) =>
  `${subject.name} ${way} ${connections}`
// Compiled code before the first figure: of the service, the generator and the emulated node.
for (const subject of subjects)
  await measure(loadOf(subject, 'uncached', 1, [...Array(subject.warm).keys()]))
for (let left = warmUps; left > 0; left--)
  for (const subject of subjects)
    for (const way of ['direct', 'cached'] as const)
      await measure(loadOf(subject, way, busy, partOf(subject, -1)))
for (let part = 0; part < rounds * 2; part++) {
  const connections = part % 2 === 0 ? 1 : busy
  for (const subject of subjects)
    for (const way of ways) {
      const sample = await measure(loadOf(subject, way, connections, partOf(subject, part)))
      const key = keyOf(subject, way, connections)
      samples.set(key, [...(samples.get(key) ?? []), sample])
    }
}
generator.kill()

service.kill('SIGTERM')
if (service.exitCode === null) await once(service, 'exit')
await anvil.stop()
await rm(dir, { recursive: true, force: true })

const of = (subject: Subject, way: Way, connections: number, field: keyof QuerySample) =>
  median((samples.get(keyOf(subject, way, connections)) ?? []).map((sample) => sample[field]))
const faster = (subject: Subject, connections: number) =>
  of(subject, 'direct', connections, 'p50') / of(subject, 'cached', connections, 'p50')
const adds = (subject: Subject, way: Way, connections: number) =>
  of(subject, 'uncached', connections, 'p50') - of(subject, way, connections, 'p50')
const more = (subject: Subject, connections: number) =>
  of(subject, 'cached', connections, 'rate') / of(subject, 'direct', connections, 'rate')
const node = process.arch === 'x64' ? 'anvil' : 'anvil, which an emulator runs on this machine'
await writeSection(
  'Chain queries',
  'node bench/query.ts',
  `Operations of Q against the same JSON-RPC call sent to the node itself (${node}), ${requests} requests, median of ${rounds} interleaved rounds, over one connection and over ${busy}. A transaction has twenty logs. Uncached asks for each thing once, cached for what was asked for just before; all ways are warmed up. The node answers later when it has rested for ${restMs} ms before, as it does behind Portolan: that is listed too. Portolan's figures include the signature, one nonce per request that no crash lets through twice, limits and checks. To hold: cached at least 3 times faster than direct, uncached at most 1 ms slower.\n\n${table(
    [
      'Operation',
      'connections',
      'direct p50 ms',
      'direct after a rest p50 ms',
      'uncached p50 ms',
      'cached p50 ms',
      'uncached adds ms',
      'adds to a rested one ms',
      'cached is faster by',
      'direct/s',
      'cached/s',
      'cached serves more by',
    ],
    subjects.flatMap((subject) =>
      [1, busy].map((connections) => [
        subject.name,
        connections,
        ...ways.map((way) => of(subject, way, connections, 'p50').toFixed(2)),
        adds(subject, 'direct', connections).toFixed(2),
        adds(subject, 'rested', connections).toFixed(2),
        `${faster(subject, connections).toFixed(2)}×`,
        of(subject, 'direct', connections, 'rate').toFixed(0),
        of(subject, 'cached', connections, 'rate').toFixed(0),
        `${more(subject, connections).toFixed(2)}×`,
      ]),
    ),
  )}`,
)
