import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { processFlags } from '../../src/app/cluster/member.ts'
import type { ConnectionFile } from '../../src/app/connection-file.ts'
import { copyInitializedDataDir } from '../helpers/initialized-data-dir.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { databasePid, fast, freshFolder } from './portolan.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const program = join(root, 'bin/portolan.js')
const longWait = { timeoutMs: 120_000 }

/** A Node of this machine that cannot run the service itself. */
const findOldNode = async (): Promise<string | undefined> => {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const node = join(folder, 'node')
    if (!existsSync(node)) continue
    const { stdout } = await run(node, ['--version']).catch(() => ({ stdout: '' }))
    const major = Number(/^v(\d+)/.exec(stdout)?.[1] ?? 99)
    if (major >= 20 && major < 26) return node
  }
  return undefined
}
const oldNode = await findOldNode()

const commandsOf = async (text: string): Promise<string[]> => {
  const { stdout } = await run('ps', ['-ww', '-eo', 'args='])
  return stdout.split('\n').filter((line) => line.includes(text))
}

/** Starts the service with a command line, and waits until it answers. */
const start = async (
  dataDir: string,
  [command = '', ...args]: readonly string[],
): Promise<{ child: ChildProcess; pid: number; base_url: string }> => {
  const file = join(dataDir, 'connection.json')
  await rm(file, { force: true })
  const child = spawn(command, args, {
    cwd: root,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      PORTOLAN_PORT: '0',
      PORTOLAN_DATA_DIR: dataDir,
      PORTOLAN_LOGGING__FORMAT: 'json',
      PORTOLAN_DATABASE__EMBEDDED__SETTINGS: fast,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
  onTestFinished(async () => {
    child.kill('SIGKILL')
  })
  let connection: ConnectionFile | undefined
  await waitFor(
    'the service is ready',
    async () => {
      if (child.exitCode !== null) throw new Error(`it ended instead of starting: ${text}`)
      connection = await readFile(file, 'utf8').then(JSON.parse, () => undefined)
      return connection !== undefined
    },
    longWait,
  )
  const pid = Number(await readFile(join(dataDir, 'portolan.pid'), 'utf8'))
  return { child, pid, base_url: connection!.base_url }
}

/** A killed orphan stays in the table of processes until the process above it collects its status. */
const isRunning = async (pid: number): Promise<boolean> => {
  const { stdout } = await run('ps', ['-o', 'stat=', '-p', String(pid)]).catch(() => ({
    stdout: '',
  }))
  return stdout.trim() !== '' && !stdout.trim().startsWith('Z')
}

// Local chains in one way only: they end with the service, whatever has started it.
const all = ['start', '--chains', 'c,s', '--no-traffic']
const few = ['start', '--chains', 'none']
const ways: [string, boolean, string[]][] = [
  ['bin/portolan.js', true, [process.execPath, program, ...all]],
  ['bin/portolan.js on an older Node', oldNode !== undefined, [oldNode ?? '', program, ...few]],
  ['npm start', true, ['npm', 'start', '--', ...few.slice(1)]],
]

test.each(ways)(
  'a killed %s ends the service, which has one thread for garbage, and starts again at once',
  async (_, can, command) => {
    if (!can) return
    const dataDir = join(await freshFolder(), 'data')
    await copyInitializedDataDir(dataDir)
    const { child, pid } = await start(dataDir, command)
    const { stdout } = await run('ps', ['-ww', '-o', 'args=', '-p', String(pid)])
    expect(stdout.split(' ')).toEqual(expect.arrayContaining([...processFlags(['api', 'tracker'])]))
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    // As a supervisor does: without a pause.
    const next = await start(dataDir, command)
    expect(await isRunning(pid)).toBe(false)
    expect(next.pid).not.toBe(pid)
    const ready = async () => {
      const answer = await fetch(new URL('/ready', next.base_url))
      return [answer.status, await answer.json()]
    }
    expect((await ready())[0]).toBe(200)
    // A local chain that is still starting is listed beside it until its node answers.
    await expect.poll(ready, { timeout: 60_000 }).toEqual([200, { status: 'ready' }])
    process.kill(next.pid, 'SIGTERM')
    await waitFor('nothing is left', async () => (await commandsOf(dataDir)).length === 0, longWait)
    expect(await databasePid(dataDir)).toBeUndefined()
  },
  300_000,
)
