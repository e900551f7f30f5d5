// `portolan limits`: rate limits of an organization. Values that are not given keep the value that applied.

import type { Command } from 'commander'
import { parseLimit } from '../options.ts'
import type { Shell } from '../shell.ts'

/** `portolan limits`. */
export function addLimitsCommand(program: Command, shell: Shell): void {
  const group = program
    .command('limits')
    .summary('list, get, set and delete rate limits')
    .description(
      'A limit holds for an organization on a chain (admin, q, t, s, p or c); the chain "*" is the default of the organization. Without any record the defaults of the configuration apply.',
    )
    .addHelpText(
      'after',
      `
Examples:
  portolan limits list acme
  portolan limits set acme c --per-second 500 --per-month unlimited
  portolan limits set acme --per-second 20      the default of the organization
  portolan limits delete acme c`,
    )
  const run = () => import('./run.ts')

  group
    .command('list')
    .description('List the limits of an organization, and the defaults of the configuration.')
    .argument('<organization>', 'domain or id')
    .option('--json', 'print JSON')
    .action(async (organization, _options, command: Command) =>
      (await run()).listLimits(shell, organization, command.optsWithGlobals()),
    )
  group
    .command('get')
    .description('Show one limit.')
    .argument('<organization>', 'domain or id')
    .argument('[chain]', 'chain; the default of the organization unless given', '*')
    .option('--json', 'print JSON')
    .action(async (organization, chain, _options, command: Command) =>
      (await run()).getLimit(shell, { organization, chain }, command.optsWithGlobals()),
    )
  group
    .command('set')
    .description('Set a limit. A window that is not given keeps its value.')
    .argument('<organization>', 'domain or id')
    .argument('[chain]', 'chain; the default of the organization unless given', '*')
    .option('--per-second <calls>', 'number, unlimited or blocked', parseLimit)
    .option('--per-hour <calls>', 'number, unlimited or blocked', parseLimit)
    .option('--per-day <calls>', 'number, unlimited or blocked', parseLimit)
    .option('--per-month <calls>', 'number, unlimited or blocked', parseLimit)
    .option('--json', 'print JSON')
    .action(async (organization, chain, _options, command: Command) =>
      (await run()).setLimit(shell, { organization, chain }, command.optsWithGlobals()),
    )
  group
    .command('delete')
    .description('Delete a limit; the next more general one applies from then on.')
    .argument('<organization>', 'domain or id')
    .argument('[chain]', 'chain, or * for the default of the organization')
    .option('--all', 'delete every limit of the organization')
    .action(async (organization, chain, _options, command: Command) =>
      (await run()).deleteLimits(shell, { organization, chain }, command.optsWithGlobals()),
    )
}
