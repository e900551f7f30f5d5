import { execFile, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { createRecordRing } from '../src/gateway/cache/record-ring.ts'
import { cpuSeconds } from './lib/cpu.ts'
import { median, table, writeSection } from './lib/results.ts'

// What decides whether workers are threads with one cache or processes with a cache each: the CPU of a look-up in a
// ring that threads share, the share of hits that several caches lose, and the CPU of a request in threads and in processes.
const run = promisify(execFile)
const rounds = Number(process.env.ROUNDS ?? 5)
const seconds = Number(process.env.SECONDS ?? 3)

// --- One look-up

const slots = 2 ** 15
const recordBytes = 2_048
const keyBytes = 96
const entries = 8_192
const passes = 10

const keyOf = (index: number) =>
  `eth_getBlockByNumber ["0x${index.toString(16)}",false]`.padEnd(keyBytes)
const answer = (index: number) => `{"number":"0x${index.toString(16)}"`.padEnd(1_200, 'x')

const hashOf = (key: string): number => {
  let hash = 0
  for (let at = 0; at < key.length; at++) hash = (Math.imul(hash, 31) + key.charCodeAt(at)) | 0
  return hash & (slots - 1)
}

/**
 * As much as threads need at least: a table of records of one size. A version before and after a record lets a reader
 * notice a writer; the bytes are copied out, because they may be overwritten while they are sent.
 */
function createSharedRing(memory: SharedArrayBuffer) {
  const bytes = Buffer.from(memory)
  const words = new Int32Array(memory)
  const versionAt = (slot: number) => (slot * recordBytes) >> 2
  return {
    put(key: string, text: string): void {
      const slot = hashOf(key)
      const at = slot * recordBytes
      Atomics.add(words, versionAt(slot), 1)
      words[versionAt(slot) + 1] = key.length
      words[versionAt(slot) + 2] = text.length
      bytes.write(key, at + 16, 'latin1')
      bytes.write(text, at + 16 + key.length, 'latin1')
      Atomics.add(words, versionAt(slot), 1)
    },
    find(key: string): string | undefined {
      const slot = hashOf(key)
      const at = slot * recordBytes
      for (;;) {
        const version = Atomics.load(words, versionAt(slot))
        if (version % 2 !== 0) continue
        const [length, textLength] = [words[versionAt(slot) + 1]!, words[versionAt(slot) + 2]!]
        let isSame = length === key.length
        for (let index = 0; isSame && index < length; index++)
          isSame = bytes[at + 16 + index] === key.charCodeAt(index)
        const from = at + 16 + length
        const text = isSame ? bytes.toString('latin1', from, from + textLength) : undefined
        if (Atomics.load(words, versionAt(slot)) === version) return text
      }
    },
  }
}

/** Nanoseconds of CPU for one look-up. */
function timeLookUps(find: (key: string) => string | undefined): number {
  const keys = Array.from({ length: entries }, (_, index) => keyOf(index))
  const times: number[] = []
  let found = 0
  for (let round = 0; round <= rounds; round++) {
    const before = process.threadCpuUsage()
    for (let pass = 0; pass < passes; pass++)
      for (const key of keys) found += find(key)?.length ?? 0
    const { user, system } = process.threadCpuUsage(before)
    // The first round warms up.
    if (round > 0) times.push(((user + system) * 1_000) / (passes * entries))
  }
  if (found === 0) throw new Error('Nothing was found.')
  return median(times)
}

async function measureLookUps(): Promise<string> {
  const map = new Map<string, string>()
  const ring = createRecordRing({ maxBytes: 64 * 1024 * 1024 })
  const memory = new SharedArrayBuffer(slots * recordBytes)
  const shared = createSharedRing(memory)
  for (let index = 0; index < entries; index++) {
    const [key, text] = [keyOf(index), answer(index)]
    map.set(key, text)
    ring.put({ key, number: -1, hash: '', text })
    shared.put(key, text)
  }
  const own = (key: string) => {
    const place = ring.find(key)
    return place < 0 ? undefined : ring.readAt(place)
  }
  const rows: [string, number][] = [
    ['`Map` of strings in the heap', timeLookUps((key) => map.get(key))],
    ['the ring of a process, as it is', timeLookUps(own)],
    ['a ring in shared memory, read by one thread', timeLookUps(shared.find)],
  ]
  const writer = new Worker(new URL(import.meta.url), { workerData: { memory } })
  await once(writer, 'online')
  rows.push(['the same while another thread writes 10,000/s', timeLookUps(shared.find)])
  await writer.terminate()
  return `A look-up and the copy of 1.2 KB out of it, CPU of the reading thread.\n\n${table(
    ['Cache', 'ns'],
    rows.map(([name, ns]) => [name, Math.round(ns)]),
  )}`
}

// --- Hits

const createRandom = (seed: number) => () => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) | 0
  return (seed >>> 0) / 2 ** 32
}

/** Ranks by Zipf's law with exponent 1, over this many. */
const createZipf = (count: number, random: () => number) => () =>
  Math.floor(Math.exp(random() * Math.log(count + 1))) - 1

/**
 * The share of hits with the same memory in one cache or divided among several. Half of the requests are about the
 * head, which changes every block, half about older blocks; connections go to workers at random.
 */
function simulateHits(workers: number, perBlock: number): number {
  const random = createRandom(7)
  const [recent, old] = [createZipf(5_000, random), createZipf(1_000_000, random)]
  const capacity = Math.floor(100_000 / workers)
  const caches = Array.from({ length: workers }, () => new Map<string, true>())
  const requests = 300_000
  let hits = 0
  for (let request = 0; request < requests; request++) {
    const block = Math.floor(request / perBlock)
    const key = random() < 0.5 ? `${block}/${recent()}` : `old/${old()}`
    const cache = caches[Math.floor(random() * workers)]!
    if (cache.delete(key)) hits++
    cache.set(key, true)
    if (cache.size > capacity) cache.delete(cache.keys().next().value!)
  }
  return hits / requests
}

function measureHits(): string {
  const counts = [1, 2, 4, 8]
  const rates = [1_000, 10_000, 50_000]
  const rows = rates.map((perBlock) => [
    perBlock,
    ...counts.map((workers) => `${(100 * simulateHits(workers, perBlock)).toFixed(1)} %`),
  ])
  return `Simulated: 100,000 entries in one cache or divided among several, half of the requests about the head (5,000 questions that change with each block), half about 1,000,000 older ones, both by Zipf's law.\n\n${table(['Requests per block', ...counts.map((one) => (one === 1 ? 'one cache' : `${one} caches`))], rows)}`
}

// --- A question to another process

/** The CPU of both sides for one message there and one back, with an answer of 1.2 KB. */
async function measureMessages(): Promise<string> {
  const child = fork(import.meta.filename, ['echo'], { serialization: 'advanced' })
  await once(child, 'message')
  const waiting = new Map<number, () => void>()
  child.on('message', ({ id }: { id: number }) => {
    waiting.get(id)?.()
    waiting.delete(id)
  })
  let last = 0
  const ask = (): Promise<void> =>
    new Promise((resolve) => {
      const id = ++last
      waiting.set(id, resolve)
      child.send({ type: 'ask', id, kind: 'read', value: keyOf(id) })
    })
  const times: number[] = []
  const [count, atOnce] = [20_000, 16]
  for (let round = 0; round <= rounds; round++) {
    const [own, other] = [process.cpuUsage(), cpuSeconds(child.pid!)]
    const work = async () => {
      for (let turn = 0; turn < count / atOnce; turn++) await ask()
    }
    await Promise.all(Array.from({ length: atOnce }, work))
    const { user, system } = process.cpuUsage(own)
    const micros = user + system + (cpuSeconds(child.pid!) - other) * 1e6
    if (round > 0) times.push(micros / count)
  }
  child.kill()
  return `A question to another process and its answer of 1.2 KB over the channel of Node, ${atOnce} at once: ${median(times).toFixed(1)} µs of CPU in both processes. From worker to worker it goes through the supervisor: twice as much.`
}

// --- Threads and processes

const body = 'x'.repeat(1_200)

function serve(port: number): void {
  createServer((request, response) => {
    request.resume()
    request.on('end', () => response.end(body))
  }).listen({ port, host: '127.0.0.1', reusePort: true })
}

async function measureServers(): Promise<string> {
  const start = (kind: string, port: number) =>
    spawn(process.execPath, [import.meta.filename, kind, `${port}`], { stdio: 'inherit' })
  const firstPort = 20_000 + (process.pid % 20_000)
  const kinds = [
    { name: '1 process', children: [start('serve', firstPort)], port: firstPort },
    {
      name: '2 processes',
      children: [start('serve', firstPort + 1), start('serve', firstPort + 1)],
      port: firstPort + 1,
    },
    { name: '2 threads', children: [start('threads', firstPort + 2)], port: firstPort + 2 },
  ]
  await delay(1_500)
  const samples = kinds.map((): number[] => [])
  for (let round = 0; round <= rounds; round++)
    for (const [index, { children, port }] of kinds.entries()) {
      const cpu = () => children.reduce((sum, { pid }) => sum + cpuSeconds(pid!), 0)
      const before = cpu()
      const { stdout } = await run('wrk', [
        ...['-t1', '-c64', `-d${seconds}s`, `http://127.0.0.1:${port}/`],
      ])
      const requests = Number(/(\d+) requests in/.exec(stdout)?.[1])
      if (round > 0) samples[index]!.push(((cpu() - before) * 1e6) / requests)
    }
  for (const { children } of kinds) for (const child of children) child.kill()
  return `An HTTP server of Node without anything else, 1.2 KB each, 64 connections over \`SO_REUSEPORT\`, median of ${rounds} interleaved rounds of ${seconds} s on ${availableParallelism()} cores.\n\n${table(
    ['Server', 'µs of CPU per request'],
    kinds.map(({ name }, index) => [name, median(samples[index]!).toFixed(1)]),
  )}`
}

const [kind, port] = process.argv.slice(2)
if (!isMainThread && workerData?.memory) {
  const ring = createSharedRing(workerData.memory as SharedArrayBuffer)
  let next = 0
  setInterval(() => {
    for (let count = 0; count < 100; count++, next++)
      ring.put(keyOf(next % entries), answer(next % entries))
  }, 10)
} else if (!isMainThread) serve(Number(workerData?.port))
else if (kind === 'serve') serve(Number(port))
else if (kind === 'echo') {
  process.on('message', ({ id }: { id: number }) =>
    process.send?.({ type: 'reply', id, value: answer(id) }),
  )
  process.send?.({ id: 0 })
} else if (kind === 'threads')
  for (let count = 0; count < 2; count++)
    new Worker(new URL(import.meta.url), { workerData: { port } })
else {
  const texts = [
    await measureLookUps(),
    measureHits(),
    await measureMessages(),
    await measureServers(),
  ]
  await writeSection('Sharing between workers', 'node bench/sharing.ts', texts.join('\n\n'))
}
