// `portolan apply`: organizations as a document. It compares the document with the database, shows the difference, and
// changes what differs with the operations of the API, each with its audit event. It guarantees that a second run
// changes nothing, that nothing is removed without --prune, and that a bad document changes nothing at all.

import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan apply`. */
export function addApplyCommand(program: Command, shell: Shell): void {
  program
    .command('apply')
    .summary('bring organizations to what a document says')
    .description(
      'Creates and changes organizations, keys, limits, quotas, wallets, addresses, webhooks and contracts until they are as a YAML document says. What the document leaves out is not touched. Keys and webhooks are created once; their secrets are printed once, or written to a file.',
    )
    .requiredOption('-f, --file <file>', 'the document, or - for the standard input')
    .option('--plan', 'only show what would change')
    .option('--prune', 'also remove what the sections of the document do not have')
    .option(
      '--secrets <file>',
      'append new secrets to this file (mode 0600) instead of printing them',
    )
    .option('--json', 'with --plan, print JSON')
    .addHelpText(
      'after',
      `
Examples:
  portolan apply -f org.yaml --plan
  portolan apply -f org.yaml --secrets secrets.jsonl
  portolan apply -f org.yaml --prune`,
    )
    .action(async (_options, command: Command) => {
      const { runApply } = await import('./run.ts')
      await runApply(shell, command.optsWithGlobals())
    })
}
