import type { Readable, Writable } from 'node:stream'
import { toInteger } from '../lib/integers.ts'

/** An output that may be a terminal. */
export type Output = Writable & { isTTY?: boolean; columns?: number; rows?: number }

/** What a command knows of the shell that called it. */
export type Shell = {
  env: Readonly<Record<string, string | undefined>>
  cwd: string
  stdin: Readable & { isTTY?: boolean }
  stdout: Output
  stderr: Output
  /** How the command ends: 0 done, 1 failed, 2 called in a wrong way. */
  setExitCode(code: number): void
}

/** The shell of this process. */
export const processShell = (): Shell => ({
  env: process.env,
  cwd: process.cwd(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  setExitCode: (code) => {
    process.exitCode = code
  },
})

/** Options that every command takes. */
export type GlobalOptions = { config?: string; dataDir?: string; debug?: boolean }

/** What a command does when the reader of its output has closed. */
export const endWithReader = (error: NodeJS.ErrnoException): void => {
  if (error.code === 'EPIPE') process.exit()
  throw error
}

/**
 * A service continues: the reader of its log may be restarted, and in `portolan start | tee log` a Ctrl-C
 * ends the reader first, while the database and the local chains are still to be stopped.
 */
export const outliveReader = ({ stdout, stderr }: Shell): void => {
  stdout.off('error', endWithReader)
  for (const output of [stdout, stderr]) output.on('error', () => {})
}

/** Writes a line, or several, to the output that other programs read. */
export const print = (shell: Shell, text: string): void => {
  shell.stdout.write(`${text}\n`)
}

/** Writes a line to the output that people read. */
export const note = (shell: Shell, text: string): void => {
  shell.stderr.write(`${text}\n`)
}

/** Writes a value as JSON. */
export const printJson = (shell: Shell, value: unknown): void =>
  print(shell, JSON.stringify(value, wholeInteger, 2))

// Integers beyond 2^53 − 1 come as bigint, and are JSON integers like the others.
const wholeInteger = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? toInteger(value) : value

/** Whether a person is watching the output. */
export const isWatched = (output: Output, env: Shell['env']): boolean =>
  output.isTTY === true && !env.CI
