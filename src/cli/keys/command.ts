import type { Command } from 'commander'
import { parseRole } from '../options.ts'
import type { Shell } from '../shell.ts'

/** `portolan keys`. */
export function addKeysCommand(program: Command, shell: Shell): void {
  const group = program
    .command('keys')
    .summary('list, create and delete API keys')
    .description(
      'Works on the database itself and needs no key, so that an operator can begin, or help out.',
    )
    .addHelpText(
      'after',
      `
Examples:
  portolan keys create acme --name backend
  portolan keys create acme --role admin --json
  portolan keys list acme
  portolan keys delete plk_…`,
    )
  const run = () => import('./run.ts')

  group
    .command('list')
    .description('List the keys of an organization, without their secrets.')
    .argument('<organization>', 'domain or id')
    .option('--json', 'print JSON')
    .action(async (organization, _options, command: Command) =>
      (await run()).listKeys(shell, organization, command.optsWithGlobals()),
    )
  group
    .command('create')
    .description('Create a key. Its secret is shown once and never again.')
    .argument('<organization>', 'domain or id')
    .option('--role <role>', 'admin or member', parseRole, 'ROLE_MEMBER' as const)
    .option('--name <name>', 'what it is for')
    .option('--json', 'print JSON')
    .action(async (organization, _options, command: Command) =>
      (await run()).createKey(shell, organization, command.optsWithGlobals()),
    )
  group
    .command('delete')
    .description('Delete a key. It stops working at once, in every process.')
    .argument('<key>', 'the key, or its id as "portolan keys list" shows it')
    .action(async (key, _options, command: Command) =>
      (await run()).deleteKey(shell, key, command.optsWithGlobals()),
    )
}
