// `portolan keys`: credentials of an organization. It calls the administration operations on the database
// directly, with an audit event for each change. A secret is printed once.

import type { Command } from 'commander'
import { parseExpiry, parseRole, parseSeconds } from '../options.ts'
import type { Shell } from '../shell.ts'

/** `portolan keys`. */
export function addKeysCommand(program: Command, shell: Shell): void {
  const group = program
    .command('keys')
    .summary('list, create, rotate and revoke API keys')
    .description('Works on the database directly and needs no key.')
    .addHelpText(
      'after',
      `
Examples:
  portolan keys create acme --name backend
  portolan keys create acme --role admin --json
  portolan keys create acme --role reader --scope c:read gateway:c --expires 90d
  portolan keys create acme --from 192.0.2.0/24
  portolan keys list acme
  portolan keys rotate 01a1… --overlap 1h
  portolan keys revoke plk_…`,
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
    .option('--role <role>', 'admin, owner, member or reader', parseRole, 'ROLE_MEMBER' as const)
    .option('--name <name>', 'what it is for')
    .option(
      '--scope <scope...>',
      'what it may be used for: *, c:read, c:write, gateway:c/mainnet …',
    )
    .option('--from <network...>', 'where it may be used from: 192.0.2.0/24, 2001:db8::/32 …')
    .option('--expires <time>', 'when it ends: 90d, 12h, or 2027-01-31T00:00:00Z', parseExpiry)
    .option('--json', 'print JSON')
    .action(async (organization, _options, command: Command) =>
      (await run()).createKey(shell, organization, command.optsWithGlobals()),
    )
  group
    .command('update')
    .description(
      'Change the name or the restrictions of a key. It takes effect at once, in every process.',
    )
    .argument('<id>', 'the id as "portolan keys list" shows it')
    .option('--name <name>', 'what it is for')
    .option('--scope <scope...>', 'what it may be used for; * is everything')
    .option('--from <network...>', 'where it may be used from; 0.0.0.0/0 ::/0 is everywhere')
    .option('--expires <time>', 'when it ends: 90d, 12h, a time, or never', parseExpiry)
    .action(async (id, _options, command: Command) =>
      (await run()).updateKey(shell, id, command.optsWithGlobals()),
    )
  group
    .command('rotate')
    .description('Create a successor of a key; both work during the overlap.')
    .argument('<id>', 'the id as "portolan keys list" shows it')
    .option(
      '--overlap <time>',
      'how long the old key stays valid: 24h, 90m, 0s',
      parseSeconds,
      86_400,
    )
    .option('--json', 'print JSON')
    .action(async (id, _options, command: Command) =>
      (await run()).rotateKey(shell, id, command.optsWithGlobals()),
    )
  group
    .command('revoke')
    .alias('delete')
    .description('Delete a key without its secret. It stops working at once, in every process.')
    .argument('<key>', 'the key, or its id as "portolan keys list" shows it')
    .action(async (key, _options, command: Command) =>
      (await run()).revokeKey(shell, key, command.optsWithGlobals()),
    )
}
