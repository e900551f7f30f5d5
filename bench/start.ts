import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { median, table, writeSection } from './lib/results.ts'

/** Milliseconds from the start of the process to its own word that it is ready. */
async function timeStart(dataDir: string, binaries: string): Promise<number> {
  const begun = performance.now()
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, '../bin/portolan.js'), 'start', '--chains', 'none'],
    {
      env: {
        ...process.env,
        CI: 'true',
        PORTOLAN_PORT: '0',
        PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true',
        PORTOLAN_DATA_DIR: dataDir,
        ...(binaries && { PORTOLAN_DATABASE__EMBEDDED__BINARIES: binaries }),
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  let ready = 0
  for await (const line of createInterface({ input: child.stdout }))
    if (line.includes('"msg":"started"')) {
      ready = performance.now() - begun
      child.kill('SIGTERM')
    }
  if (child.exitCode === null) await once(child, 'exit')
  return ready
}

const rounds = 5
const fresh: number[] = []
const existing: number[] = []
for (let round = 0; round < rounds; round++) {
  const dataDir = await mkdtemp(join(tmpdir(), 'portolan-bench-'))
  await chmod(dataDir, 0o711)
  fresh.push(await timeStart(dataDir, ''))
  existing.push(await timeStart(dataDir, ''))
  await rm(dataDir, { recursive: true, force: true })
}
const row = (name: string, values: number[], goal: string) => [
  name,
  `${Math.round(median(values))} ms`,
  `${Math.round(Math.min(...values))} to ${Math.round(Math.max(...values))} ms`,
  goal,
]
await writeSection(
  'Start-up to ready',
  'node bench/start.ts',
  table(
    ['Data directory', 'median of 5', 'range', 'goal'],
    [row('new', fresh, '5000 ms'), row('existing', existing, '1500 ms')],
  ),
)
