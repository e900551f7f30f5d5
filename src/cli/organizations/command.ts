// `portolan organizations`: the life cycle of organizations, with the same checks and audit events as the
// operations.

import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan organizations`. */
export function addOrganizationsCommand(program: Command, shell: Shell): void {
  const group = program
    .command('organizations')
    .alias('orgs')
    .summary('list, create, show, rename, enable, disable and delete organizations')
    .description('Works on the database directly and needs no key.')
    .addHelpText(
      'after',
      `
Examples:
  portolan organizations create acme --name "Acme Ltd"
  portolan organizations list --json
  portolan organizations disable acme`,
    )
  const run = () => import('./run.ts')

  group
    .command('list')
    .description('List all organizations.')
    .option('--json', 'print JSON')
    .action(async (_options, command: Command) =>
      (await run()).listOrganizations(shell, command.optsWithGlobals()),
    )
  group
    .command('create')
    .description('Create an organization.')
    .argument('<domain>', 'its unique short name: lower-case letters, digits and dashes')
    .option('--name <name>', 'its full name; the domain unless given')
    .option('--json', 'print JSON')
    .action(async (domain, _options, command: Command) =>
      (await run()).createOrganization(shell, domain, command.optsWithGlobals()),
    )
  group
    .command('show')
    .description('Show an organization.')
    .argument('<organization>', 'domain or id')
    .option('--json', 'print JSON')
    .action(async (organization, _options, command: Command) =>
      (await run()).showOrganization(shell, organization, command.optsWithGlobals()),
    )
  group
    .command('rename')
    .description('Give an organization another name or domain.')
    .argument('<organization>', 'domain or id')
    .option('--name <name>', 'its new name')
    .option('--domain <domain>', 'its new unique short name')
    .option('--json', 'print JSON')
    .action(async (organization, _options, command: Command) =>
      (await run()).renameOrganization(shell, organization, command.optsWithGlobals()),
    )
  group
    .command('delete')
    .description(
      'Delete an organization with all its data. Its keys are revoked at once; the running service erases its rows.',
    )
    .argument('<organization>', 'domain or id')
    .option('--yes', 'do it; without this nothing is changed')
    .option('--json', 'print JSON')
    .action(async (organization, _options, command: Command) =>
      (await run()).deleteOrganization(shell, organization, command.optsWithGlobals()),
    )
  group
    .command('deletion')
    .description('Show the erase report of a deleted organization.')
    .argument('<organization_id>', 'its id')
    .option('--json', 'print JSON')
    .action(async (organization_id, _options, command: Command) =>
      (await run()).showDeletion(shell, organization_id, command.optsWithGlobals()),
    )
  for (const name of ['enable', 'disable'] as const)
    group
      .command(name)
      .description(
        name === 'enable'
          ? 'Accept the keys of an organization again.'
          : 'Refuse all keys of an organization from now on; nothing is deleted.',
      )
      .argument('<organization>', 'domain or id')
      .option('--json', 'print JSON')
      .action(async (organization, _options, command: Command) =>
        (await run()).setOrganizationEnabled(
          shell,
          { organization, enabled: name === 'enable' },
          command.optsWithGlobals(),
        ),
      )
}
