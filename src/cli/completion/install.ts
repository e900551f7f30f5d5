import { existsSync } from 'node:fs'
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Command } from 'commander'
import { CliError, usageError } from '../cli-error.ts'
import { note, print, type Shell } from '../shell.ts'
import { completionScript } from './script.ts'

/** A shell that completes. */
export type CompletedShell = 'bash' | 'zsh' | 'fish'

const known: readonly CompletedShell[] = ['bash', 'zsh', 'fish']

// Debian and most others, and Homebrew on both kinds of Mac.
const bashCompletions = [
  '/usr/share/bash-completion/bash_completion',
  '/usr/local/etc/profile.d/bash_completion.sh',
  '/opt/homebrew/etc/profile.d/bash_completion.sh',
]

/** Writes the completion script to where the shell of the user looks for it. */
export async function installCompletion(
  shell: Shell,
  program: Command,
  named: string | undefined,
  hasBashCompletion = bashCompletions.some(existsSync),
): Promise<void> {
  const name = named ?? basename(shell.env.SHELL ?? '')
  const chosen = known.find((one) => one === name)
  if (!chosen)
    throw usageError(
      `Name your shell: ${known.join(', ')}.${name ? ` "${name}" is none of them.` : ''}`,
    )
  const path = placeOf(chosen, shell)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, `${completionScript(program, chosen)}\n`)
  print(shell, path)
  if (chosen === 'bash' && !hasBashCompletion) await loadInBash(shell, path)
  note(shell, afterwards[chosen](dirname(path)))
}

/** Without the package bash-completion nothing reads the folder: the start file of bash does it then, with one line. */
async function loadInBash(shell: Shell, path: string): Promise<void> {
  const start = join(shell.env.HOME as string, '.bashrc')
  const line = `[ -r '${path}' ] && . '${path}'`
  const text = await readFile(start, 'utf8').catch(() => '')
  if (text.split('\n').includes(line)) return
  await appendFile(start, `${text === '' || text.endsWith('\n') ? '' : '\n'}${line}\n`)
  note(shell, `The package bash-completion is not installed, so ${start} loads the script.`)
}

function placeOf(name: CompletedShell, { env }: Shell): string {
  const home = env.HOME
  if (!home) throw new CliError('HOME is not set, so the place of the script is not known.')
  // The places of the XDG specification.
  const data = env.XDG_DATA_HOME || join(home, '.local', 'share')
  const config = env.XDG_CONFIG_HOME || join(home, '.config')
  return {
    bash: join(data, 'bash-completion', 'completions', 'portolan'),
    zsh: join(data, 'zsh', 'site-functions', '_portolan'),
    fish: join(config, 'fish', 'completions', 'portolan.fish'),
  }[name]
}

const afterwards: Readonly<Record<CompletedShell, (folder: string) => string>> = {
  bash: () => 'Open a new shell.',
  zsh: (folder) =>
    `Open a new shell. Where zsh does not look there yet, add to .zshrc: fpath=(${folder} $fpath); autoload -U compinit; compinit`,
  fish: () => 'Open a new shell.',
}
