import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, onTestFinished, TestRunner } from 'vitest'
import type { ConnectionFile } from '../../src/app/connection-file.ts'
import { runCli } from '../../src/cli/cli.ts'
import { layoutOf } from '../../src/storage/embedded/layout.ts'
import { findPostmaster } from '../../src/storage/embedded/postmaster.ts'
import { bundledService } from '../helpers/bundle.ts'
import { copyInitializedDataDir } from '../helpers/initialized-data-dir.ts'

/** The file that Node runs: the service, bundled. `bin/portolan.js` and the tests of it run the sources. */
export const main: string = await bundledService()

/** What a command printed, and how it ended. */
export type Outcome = { code: number | null; stdout: string; stderr: string }

type Surroundings = {
  dataDir?: string
  cwd?: string
  env?: Record<string, string>
  input?: string
  /** Where standard output is a terminal. */
  columns?: number
  node?: readonly string[]
  /** Instead of the bundle of this checkout. */
  program?: string
}

/** A running service. */
export type Service = {
  child: ChildProcess
  connection: ConnectionFile
  output(): string
  /** Ends it with a signal, and says how it ended. */
  stop(signal?: NodeJS.Signals): Promise<Outcome>
}

/** Settings of an embedded database where durability is not the subject of the test. */
export const fast = 'fsync: false\nsynchronous_commit: false\nfull_page_writes: false'

const cleanUp = (work: () => Promise<void>): void => {
  if (TestRunner.getCurrentTest()) onTestFinished(work)
  else afterAll(work)
}

/** A folder of its own for a test or a test file, removed after it. */
export const freshFolder = async (): Promise<string> => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'portolan-cli-')))
  // As root the database runs as another user, who must come through.
  await chmod(folder, 0o711)
  cleanUp(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

const environmentOf = (options: Surroundings) => ({
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  PORTOLAN_PORT: '0',
  PORTOLAN_SERVER__WORKERS: '1',
  PORTOLAN_DATABASE__EMBEDDED__SETTINGS: fast,
  ...(options.dataDir !== undefined && { PORTOLAN_DATA_DIR: options.dataDir }),
  ...options.env,
})

const launch = (args: readonly string[], options: Surroundings): ChildProcess =>
  spawn(process.execPath, [...(options.node ?? []), options.program ?? main, ...args], {
    cwd: options.cwd ?? tmpdir(),
    env: environmentOf(options),
  })

const collect = (child: ChildProcess): { text: Outcome; ended: Promise<Outcome> } => {
  const text: Outcome = { code: null, stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    text.stdout += chunk
  })
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text.stderr += chunk
  })
  const ended = once(child, 'close').then(([code]) => ({ ...text, code: code as number | null }))
  return { text, ended }
}

/**
 * Runs a command to its end inside this process. Starting a Node for each command costs about a second
 * of CPU; the tests of signals, exit codes and output streams of the program use `portolan`.
 */
export const runCommand = async (
  args: readonly string[],
  options: Omit<Surroundings, 'node'> = {},
): Promise<Outcome> => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const texts = Promise.all([textOf(stdout), textOf(stderr)])
  let code = 0
  await runCli(['node', 'portolan', ...args], {
    env: environmentOf(options),
    cwd: options.cwd ?? tmpdir(),
    stdin: Readable.from([options.input ?? '']),
    stdout: options.columns
      ? Object.assign(stdout, { isTTY: true, columns: options.columns })
      : stdout,
    stderr,
    setExitCode: (given) => {
      code = given
    },
  })
  stdout.end()
  stderr.end()
  const [out, err] = await texts
  return { code, stdout: out, stderr: err }
}

/** Runs a command to its end in a process of its own. */
export const portolan = async (
  args: readonly string[],
  options: Surroundings = {},
): Promise<Outcome> => {
  const child = launch(args, options)
  child.stdin?.end(options.input ?? '')
  return await collect(child).ended
}

/** Starts a command that continues until it is stopped. */
export const startPortolan = (
  args: readonly string[],
  options: Surroundings = {},
): { output(): string; stop(signal?: NodeJS.Signals): Promise<Outcome> } => {
  const child = launch(args, options)
  child.stdin?.end('')
  const { text, ended } = collect(child)
  cleanUp(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return {
    output: () => text.stdout + text.stderr,
    stop: async (signal = 'SIGINT') => {
      child.kill(signal)
      return await ended
    },
  }
}

/**
 * Starts the service and waits for its connection file. A data directory that does not exist begins as a
 * copy of an initialized one, unless the test is about the first start.
 */
export const startService = async (
  dataDir: string,
  options: Omit<Surroundings, 'dataDir'> & {
    args?: readonly string[]
    isFirstStart?: boolean
  } = {},
): Promise<Service> => {
  if (!options.isFirstStart && !existsSync(dataDir)) await copyInitializedDataDir(dataDir)
  // What a killed service left behind says nothing about the new one.
  await rm(join(dataDir, 'connection.json'), { force: true })
  // Local chains are for the tests that are about them.
  const child = launch(['start', '--chains', 'none', ...(options.args ?? [])], {
    ...options,
    // Local chains bring the demo administrator by themselves.
    env: {
      ...(!options.args && { PORTOLAN_SECURITY__DEVELOPMENT_RULES: 'true' }),
      ...options.env,
    },
    dataDir,
  })
  const { text, ended } = collect(child)
  // Only a test that failed half-way leaves something to kill.
  cleanUp(async () => {
    child.kill('SIGKILL')
    await ended
    const pid = await databasePid(dataDir)
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
  })
  const connection = await Promise.race([
    readConnection(dataDir, () => child.exitCode !== null),
    ended.then(({ stderr }) => Promise.reject(new Error(`the service ended: ${stderr}`))),
  ])
  return {
    child,
    connection,
    output: () => text.stdout + text.stderr,
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal)
      return await ended
    },
  }
}

const readConnection = async (dataDir: string, ended: () => boolean): Promise<ConnectionFile> => {
  while (!ended()) {
    const text = await readFile(join(dataDir, 'connection.json'), 'utf8').catch(() => undefined)
    if (text !== undefined) return JSON.parse(text)
    await delay(20)
  }
  throw new Error('the service ended')
}

/** The process id of the PostgreSQL that serves a data directory, if there is one. */
export const databasePid = (dataDir: string): Promise<number | undefined> =>
  findPostmaster(layoutOf(dataDir).data)
