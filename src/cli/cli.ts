// The command line. One folder per command, each with `command.ts` (options and help) and `run.ts`
// (the work, loaded on use). It may use every folder. It guarantees exit codes, plain errors
// without a stack, and no secret in its output.

import { CommanderError } from 'commander'
import { createProgram } from './program.ts'
import { endWithReader, note, processShell, type Shell } from './shell.ts'

/** Runs the command line; sets the exit code: 0 done, 1 failed, 2 called in a wrong way. */
export async function runCli(
  argv: readonly string[],
  shell: Shell = processShell(),
): Promise<void> {
  // `portolan call … | head` closes the pipe early, which is not a failure.
  shell.stdout.on('error', endWithReader)
  const program = createProgram(shell)
  try {
    if (argv.length <= 2) program.outputHelp()
    else await program.parseAsync(argv)
  } catch (error) {
    shell.setExitCode(await report(error, shell, program.opts().debug === true))
  }
}

// Errors that name themselves are shown as they are. Any other one is a fault of ours and says how
// to see the stack.
async function report(error: unknown, shell: Shell, debug: boolean): Promise<number> {
  // Commander has said what there is to say.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const { explain } = await import('./explain.ts')
  const text = explain(error)
  const exitCode = (error as { exitCode?: unknown } | null)?.exitCode
  if (text === undefined) {
    const message = error instanceof Error ? error.message : String(error)
    note(shell, `Unexpected error: ${message}`)
    if (!debug) note(shell, 'Run the command again with --debug to see where.')
  } else note(shell, text)
  if (debug && error instanceof Error) note(shell, error.stack ?? '')
  return typeof exitCode === 'number' ? exitCode : 1
}
