import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { table, writeSection } from './lib/results.ts'

// What a newcomer types, on a clean clone, with nothing in HOME, in npm's cache or in TMPDIR and with
// the Node and npm of the machine: `node bench/readme.ts`. With --test the second command too.
const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '3' }, test: { type: 'boolean', default: false } },
})
const root = join(import.meta.dirname, '..')
const everyMs = 15_000

const place = await mkdtemp(join(tmpdir(), 'portolan-readme-'))
// As root the database runs as another user, who must come through.
await chmod(place, 0o711)
const clone = join(place, 'portolan')
const env: NodeJS.ProcessEnv = {
  PATH: (process.env.PATH ?? '')
    .split(':')
    .filter((folder) => !folder.includes('node_modules'))
    .join(':'),
  HOME: join(place, 'home'),
  TMPDIR: join(place, 'tmp'),
  CI: 'true',
  PORTOLAN_PORT: '0',
}
for (const folder of [env.HOME!, env.TMPDIR!]) await mkdir(folder, { mode: 0o755 })
execFileSync('git', ['clone', '-q', root, clone])

const rows: [string, string, string][] = []
const seconds = (since: number) => (performance.now() - since) / 1000

async function run(command: string): Promise<number> {
  const begun = performance.now()
  const child = spawn('sh', ['-c', command], {
    cwd: clone,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const [code] = (await once(child, 'exit')) as [number]
  if (code !== 0) throw new Error(`"${command}" ended with ${code}`)
  return seconds(begun)
}

type Sum = { rss: number; pss: number }

/** What a process and all below it hold, in MiB: each page once (pss), or once per process (rss). */
async function memoryOf(pid: number): Promise<Sum> {
  const parents = new Map<number, number>()
  for (const name of await readdir('/proc'))
    if (/^\d+$/.test(name)) {
      const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 4).split(' ')[0]))
    }
  const isBelow = (id: number | undefined): boolean =>
    id === pid || (id !== undefined && id > 1 && isBelow(parents.get(id)))
  const sum = { rss: 0, pss: 0 }
  for (const id of parents.keys()) {
    if (!isBelow(id)) continue
    const text = await readFile(`/proc/${id}/smaps_rollup`, 'utf8').catch(() => '')
    sum.rss += Number(/^Rss:\s+(\d+)/m.exec(text)?.[1] ?? 0) / 1024
    sum.pss += Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0) / 1024
  }
  return sum
}

/** `npm start` until it says that it is ready, then some minutes of its traffic. */
async function start(minutes: number): Promise<{ ready: number; samples: Sum[] }> {
  const begun = performance.now()
  const child = spawn('npm', ['start'], { cwd: clone, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  const started = new Promise<void>((resolve, reject) => {
    lines.on('line', (line) => {
      if (line.includes('"msg":"started"')) resolve()
    })
    child.once('exit', (code) => reject(new Error(`npm start ended with ${code}`)))
  })
  await started
  const ready = seconds(begun)
  const samples: Sum[] = []
  for (const end = Date.now() + minutes * 60_000; Date.now() < end; await delay(everyMs))
    samples.push(await memoryOf(child.pid!))
  child.kill('SIGINT')
  if (child.exitCode === null) await once(child, 'exit')
  return { ready, samples }
}

try {
  const install = await run('npm ci')
  const first = await start(Number(values.minutes))
  const second = await start(0)
  rows.push(['`npm ci`', `${install.toFixed(0)} s`, ''])
  rows.push(['`npm start`, the first time, to the banner', `${first.ready.toFixed(1)} s`, '15 s'])
  rows.push(['`npm start` again', `${second.ready.toFixed(1)} s`, '15 s'])
  if (values.test) {
    // It chooses its own ports, wherever it needs some.
    delete env.PORTOLAN_PORT
    const test = await run('npm ci && npm test')
    rows.push([
      '`npm ci && npm test`',
      `${Math.floor(test / 60)} min ${Math.round(test % 60)} s`,
      '20 min',
    ])
  }
  const { samples } = first
  const [begin, end] = [samples[1] ?? samples[0], samples.at(-1)]
  const most = Math.max(...samples.map(({ pss }) => pss))
  const mib = (value = 0) => `${Math.round(value)} MiB`
  await writeSection(
    'The README on a clean clone',
    `node bench/readme.ts${values.test ? ' --test' : ''}`,
    `${table(['Command', 'time', 'goal'], rows)}

Empty HOME, npm cache and TMPDIR, so that installing fetches all that is needed (on arm64 also an emulator for anvil).
Memory of everything together over ${values.minutes} minutes of the demo's traffic, each page counted once: ${mib(begin?.pss)} at the
beginning, ${mib(end?.pss)} at the end, ${mib(most)} at most (goal: 1 GiB). Shared pages counted in every process: ${mib(end?.rss)}.`,
  )
} finally {
  await rm(place, { recursive: true, force: true, maxRetries: 5 })
}
