import { styleText } from 'node:util'
import { Command } from 'commander'
import manifest from '../../package.json' with { type: 'json' }
import { addApplyCommand } from './apply/command.ts'
import { addAuditCommand } from './audit/command.ts'
import { addBackfillCommand } from './backfill/command.ts'
import { addBackupCommands } from './backup/command.ts'
import { addCallCommand } from './call/command.ts'
import { addChainsCommand } from './chains/command.ts'
import { addCompletionCommand } from './completion/command.ts'
import { addConfigCommand } from './config/command.ts'
import { addDevCommands } from './dev/command.ts'
import { addDoctorCommand } from './doctor/command.ts'
import { addInitCommand } from './init/command.ts'
import { addKeysCommand } from './keys/command.ts'
import { addLimitsCommand } from './limits/command.ts'
import { addListenCommand } from './listen/command.ts'
import { addLogsCommand } from './logs/command.ts'
import { addMasterKeyCommand } from './master-key/command.ts'
import { addNodesCommand } from './nodes/command.ts'
import { addOrganizationsCommand } from './organizations/command.ts'
import { addRewindCommand } from './rewind/command.ts'
import type { Shell } from './shell.ts'
import { addStartCommand } from './start/command.ts'
import { addStatusCommand } from './status/command.ts'
import { addStorageCommands } from './storage/command.ts'
import { addTopCommand } from './top/command.ts'

const epilogue = `
Examples:
  portolan start                             everything embedded
  portolan call admin ListOrganizations      call an operation of the service
  portolan keys create demo --name backend   make a credential
  portolan config example > portolan.yaml    begin a configuration file
  portolan doctor                            find the cause of a failure

The configuration is --config, else PORTOLAN_CONFIG, else portolan.yaml in this
folder. Every command explains itself with --help.`

/**
 * The tree of commands. What a command does is imported when it is called, so that help and
 * completion load nothing but this.
 */
export function createProgram(shell: Shell): Command {
  const program: Command = new Command('portolan')
    .description(
      'Wallet tracking, webhooks, chain queries and a node gateway for many organizations.',
    )
    .version(manifest.version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'explain a command')
    .option('-c, --config <file>', 'configuration file')
    .option('-d, --data-dir <folder>', 'folder for all that the service keeps')
    .option('--debug', 'show where an unexpected error comes from')
    .configureHelp({
      showGlobalOptions: true,
      subcommandTerm: (command) =>
        command.parent === program ? command.name() : `${command.name()} ${usageOf(command)}`,
      styleTitle: (title) => styleText('bold', title),
    })
    .configureOutput({
      writeOut: (text) => shell.stdout.write(text),
      writeErr: (text) => shell.stderr.write(text),
      outputError: (text, write) => write(`${toSentence(text)}\n`),
    })
    // Commander throws instead of ending the process: the shell decides about the exit code.
    .exitOverride()
    .addHelpText('after', epilogue)

  program.commandsGroup('Run:')
  addStartCommand(program, shell)
  addStatusCommand(program, shell)
  addTopCommand(program, shell)
  addLogsCommand(program, shell)
  addDoctorCommand(program, shell)
  program.commandsGroup('Use:')
  addCallCommand(program, shell)
  addChainsCommand(program, shell)
  addListenCommand(program, shell)
  program.commandsGroup('Try (embedded mode):')
  addDevCommands(program, shell)
  program.commandsGroup('Administer (works with and without a running service):')
  addApplyCommand(program, shell)
  addOrganizationsCommand(program, shell)
  addKeysCommand(program, shell)
  addLimitsCommand(program, shell)
  addMasterKeyCommand(program, shell)
  addAuditCommand(program, shell)
  addBackfillCommand(program, shell)
  addRewindCommand(program, shell)
  program.commandsGroup('Set up:')
  addInitCommand(program, shell)
  addConfigCommand(program, shell)
  addNodesCommand(program, shell)
  addStorageCommands(program, shell)
  addBackupCommands(program, shell)
  addCompletionCommand(program, shell)
  program.helpCommand('help [command]', 'explain a command')
  return program
}

const usageOf = (command: Command): string =>
  command.registeredArguments
    .map((argument) => (argument.required ? `<${argument.name()}>` : `[${argument.name()}]`))
    .join(' ')

/** What Commander says, such as "error: unknown command 'x'\n(Did you mean y?)", as we would say it. */
function toSentence(text: string): string {
  const [first = '', hint] = text
    .trim()
    .replace(/^error: /, '')
    .split('\n')
  const sentence = first.charAt(0).toUpperCase() + first.slice(1)
  const closed = /[.?]$/.test(sentence) ? sentence : `${sentence}.`
  return hint === undefined ? closed : `${closed} ${hint.replace(/^\((.*)\)$/, '$1')}`
}
