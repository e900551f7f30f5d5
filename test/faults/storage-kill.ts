import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import pg from 'pg'
import { connectionOf, layoutOf } from '../../src/storage/embedded/layout.ts'
import { findPostmaster } from '../../src/storage/embedded/postmaster.ts'
import { createRandom } from '../helpers/random.ts'

// Who is killed: the service, the server's first process, all its processes, or several of them.
const victims = ['service', 'postmaster', 'family', 'both', 'everything'] as const
type Victim = (typeof victims)[number]

/** What a campaign came to. */
export type Outcome = {
  kills: Record<Victim, number>
  whileStarting: number
  adopted: number
  acknowledged: number
  lost: number
  doubled: number
  /** Milliseconds from a kill to the next acknowledged row. */
  recovery: { median: number; worst: number }
}

const run = promisify(execFile)

/** A running writer program and what it has said so far. */
export type Writer = {
  child: ChildProcess
  lines: string[]
  /** Resolves with the first line after `from` that begins so. */
  heard(prefix: string, from?: number): Promise<string>
}

/** Starts the writer program on a data directory. */
export const startWriter = (
  dir: string,
  {
    number = 1,
    binaries,
    uid,
    gid,
  }: { number?: number; binaries?: string; uid?: number; gid?: number } = {},
): Writer => {
  const program = join(import.meta.dirname, 'storage-kill-writer.ts')
  const options = [
    '--dir',
    dir,
    '--run',
    `${number}`,
    ...(binaries ? ['--binaries', binaries] : []),
  ]
  const child = spawn(process.execPath, [program, ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(uid !== undefined && { uid }),
    ...(gid !== undefined && { gid }),
  })
  const lines: string[] = []
  const reader = createInterface({ input: child.stdout! })
  reader.on('line', (line) => lines.push(line))
  const heard = async (prefix: string, from = 0): Promise<string> => {
    const deadline = Date.now() + 60_000
    for (;;) {
      const line = lines.slice(from).find((each) => each.startsWith(prefix))
      if (line !== undefined) return line
      if (child.exitCode !== null || Date.now() > deadline) {
        throw new Error(`the writer never said "${prefix}" but: ${lines.slice(from, from + 5)}`)
      }
      await delay(10)
    }
  }
  return { child, lines, heard }
}

/** Ends a writer and waits until all that it said is read. */
export const endWriter = async (writer: Writer, signal: NodeJS.Signals): Promise<void> => {
  if (writer.child.exitCode !== null || writer.child.signalCode !== null) return
  const closed = once(writer.child, 'close')
  writer.child.kill(signal)
  await closed
}

const killQuietly = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It was faster.
  }
}

const childrenOf = async (pid: number): Promise<number[]> => {
  const { stdout } = await run('ps', ['-eo', 'pid=,ppid='])
  const rows = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number))
  return rows.flatMap(([child, parent]) => (parent === pid && child ? [child] : []))
}

const killServer = async (dir: string, family: boolean): Promise<boolean> => {
  const pid = await findPostmaster(layoutOf(dir).data)
  if (pid === undefined) return false
  const children = family ? await childrenOf(pid) : []
  for (const each of [pid, ...children]) killQuietly(each)
  return true
}

/** Kills, starts the service again if that died, and gives the way to wait for rows acknowledged anew. */
const strike = async (victim: Victim, dir: string, writer: Writer, restart: () => Writer) => {
  const family = victim === 'family' || victim === 'everything'
  const ready = writer.lines.some((line) => line.startsWith('ready'))
  const before = writer.lines.length
  const hit = victim !== 'service' && (await killServer(dir, family))
  if (victim === 'postmaster' || victim === 'family') {
    const recovered = async () => {
      // Lines of before the kill may still be on their way, so the restart comes first.
      if (hit && ready) await writer.heard('restarted', before)
      const from = writer.lines.findLastIndex((line) => line.startsWith('restarted'))
      await writer.heard('written ', Math.max(from, 0))
    }
    return { writer, recovered }
  }
  await endWriter(writer, 'SIGKILL')
  const next = restart()
  return { writer: next, recovered: async () => void (await next.heard('written ')) }
}

const acknowledgedOf = (writers: Writer[]): string[] =>
  writers.flatMap(({ lines }, index) =>
    lines.flatMap((line) => (line.startsWith('written ') ? [`${index} ${line.slice(8)}`] : [])),
  )

const inspect = async (dir: string, acknowledged: string[]) => {
  const client = new pg.Client(connectionOf(layoutOf(dir)))
  await client.connect()
  const { rows } = await client.query<{ key: string; copies: string }>(
    `select run || ' ' || id as key, count(*) as copies from written group by run, id`,
  )
  await client.end()
  const copies = new Map(rows.map((row) => [row.key, Number(row.copies)]))
  return {
    lost: acknowledged.filter((key) => !copies.has(key)).length,
    doubled: rows.filter((row) => Number(row.copies) > 1).length,
  }
}

/** Kills at random moments, starts again without help, and counts what was lost or doubled. */
export const runCampaign = async ({
  kills,
  seed,
  binaries,
  onKill = () => {},
}: {
  kills: number
  seed: number
  binaries?: string | undefined
  onKill?: (text: string) => void
}): Promise<Outcome> => {
  const random = createRandom(seed)
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'portolan-kill-')))
  const writers: Writer[] = []
  const start = (): Writer => {
    const writer = startWriter(dir, { number: writers.length, ...(binaries && { binaries }) })
    writers.push(writer)
    return writer
  }
  const recoveries: number[] = []
  const counts = { service: 0, postmaster: 0, family: 0, both: 0, everything: 0 }
  let whileStarting = 0
  const first = start()
  let state = {
    writer: first,
    recovered: async (): Promise<void> => void (await first.heard('written ')),
  }
  for (let kill = 1; kill <= kills; kill++) {
    // A quarter of the kills hits what is just coming up from the kill before.
    const early = random() < 0.25
    if (!early) await state.recovered()
    await delay(random() * 400)
    const victim = victims[Math.trunc(random() * victims.length)]!
    state = await strike(victim, dir, state.writer, start)
    const at = performance.now()
    counts[victim]++
    if (early) whileStarting++
    const { recovered } = state
    const timed = recovered().then(() => recoveries.push(performance.now() - at))
    // A kill that follows early may cut this recovery off; the last one must succeed.
    timed.catch(() => {})
    state.recovered = async () => void (await timed)
    onKill(`${kill}/${kills} ${victim}${early ? ' while coming up' : ''}`)
  }
  await state.recovered()
  const { writer } = state
  // Asked before the last writer ends, because a clean stop takes the server with it.
  const acknowledged = acknowledgedOf(writers)
  const { lost, doubled } = await inspect(dir, acknowledged)
  const adopted = writers.filter(({ lines }) => lines[0]?.endsWith('adopted')).length
  await endWriter(writer, 'SIGTERM')
  await rm(dir, { recursive: true, force: true })
  recoveries.sort((a, b) => a - b)
  return {
    kills: counts,
    whileStarting,
    adopted,
    acknowledged: acknowledged.length,
    lost,
    doubled,
    recovery: {
      median: Math.round(recoveries[recoveries.length >> 1] ?? 0),
      worst: Math.round(recoveries.at(-1) ?? 0),
    },
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '50' },
      seed: { type: 'string', default: '1' },
      binaries: { type: 'string' },
    },
  })
  const outcome = await runCampaign({
    kills: Number(values.kills),
    seed: Number(values.seed),
    binaries: values.binaries,
    onKill: (text) => console.log(text),
  })
  console.log(outcome)
  if (outcome.lost > 0 || outcome.doubled > 0) process.exitCode = 1
}
