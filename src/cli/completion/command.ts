// `portolan completion`: scripts for bash, zsh and fish, generated from the tree of commands.

import { Argument, type Command } from 'commander'
import { print, type Shell } from '../shell.ts'

/** `portolan completion`. */
export function addCompletionCommand(program: Command, shell: Shell): void {
  const group = program
    .command('completion')
    .summary('print a script that completes commands in your shell')
    .description(
      'Prints a script that completes commands, options, operations, and the chains of the configuration.',
    )
    .addArgument(new Argument('<shell>', 'your shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      `
Examples:
  portolan completion install
  portolan completion bash > ~/.local/share/bash-completion/completions/portolan
  portolan completion zsh > "\${fpath[1]}/_portolan"
  portolan completion fish > ~/.config/fish/completions/portolan.fish`,
    )
    .action(async (name: 'bash' | 'zsh' | 'fish') => {
      const { completionScript } = await import('./script.ts')
      print(shell, completionScript(program, name))
    })
  group
    .command('install')
    .description('Write the script to where your shell looks for it.')
    .argument('[shell]', 'bash, zsh or fish; your own unless given')
    .action(async (name: string | undefined) => {
      const { installCompletion } = await import('./install.ts')
      await installCompletion(shell, program, name)
    })
  // The scripts ask for the names of chains: those change with the configuration.
  program
    .command('__words', { hidden: true })
    .argument('[words...]')
    .action(async (words: string[], _options, command: Command) =>
      (await import('./words.ts')).printWords(shell, words, command.optsWithGlobals()),
    )
}
