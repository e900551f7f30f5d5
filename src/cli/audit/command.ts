// `portolan audit`: verify, export and print the head of the audit log. A file is verified without database
// and master key, so an auditor needs the export and the public key only.

import type { Command } from 'commander'
import type { Shell } from '../shell.ts'

/** `portolan audit`. */
export function addAuditCommand(program: Command, shell: Shell): void {
  const group = program
    .command('audit')
    .summary('verify and export the audit log')
    .description(
      'The audit log records actor, action, target, client address and result. Its events form a hash chain with a signed head.',
    )
    .addHelpText(
      'after',
      `
Examples:
  portolan audit head >> /mnt/elsewhere/heads
  portolan audit verify --head 1042:9f86d081…
  portolan audit export > audit.jsonl
  portolan audit verify --file audit.jsonl`,
    )
  const run = () => import('./run.ts')

  group
    .command('head')
    .description('Print the head of the chain. Store it elsewhere: it proves later truncation.')
    .option('--json', 'print JSON, with the public key')
    .action(async (_options, command: Command) =>
      (await run()).showHead(shell, command.optsWithGlobals()),
    )
  group
    .command('verify')
    .description('Read the whole chain and name the first broken place, if there is one.')
    .option('--head <sequence:hash...>', 'heads that were stored elsewhere')
    .option('--file <file>', 'verify an export instead of the database')
    .option('--public-key <base64>', 'the key that the chain must be signed with')
    .option('--json', 'print JSON')
    .action(async (_options, command: Command) =>
      (await run()).verifyLog(shell, command.optsWithGlobals()),
    )
  group
    .command('export')
    .description(
      'Print all events as JSON lines, with their hashes; the first line has the ends of the chain.',
    )
    .action(async (_options, command: Command) =>
      (await run()).exportLog(shell, command.optsWithGlobals()),
    )
}
