import { rewindChain } from '../../app/chain-commands.ts'
import type { RewindPlan } from '../../workers/tracker/rewind.ts'
import { audited } from '../audited.ts'
import { chainText, openChainTools, readBlock, readChain } from '../chain-tools.ts'
import { type GlobalOptions, print, type Shell } from '../shell.ts'
import { withDatabase } from '../storage/with-database.ts'

type Options = GlobalOptions & { to: string; yes?: boolean }

/** Says what a rewind retracts, and does it where that was agreed to. */
export async function runRewindCommand(
  shell: Shell,
  chain: string,
  options: Options,
): Promise<void> {
  const at = readChain(chain)
  const to = readBlock('--to', options.to)
  await withDatabase(shell, options, async (opened) => {
    const { config, tools } = await openChainTools(shell, { ...opened, at }, options)
    const agree = (plan: RewindPlan, network: string): boolean => {
      for (const line of describe(plan, `${at.chain}/${network}`)) print(shell, line)
      return options.yes === true
    }
    const run = () => rewindChain(config, tools, { to, signal: opened.signal }, agree)
    // Without --yes it only says what it would do.
    const isDone = options.yes
      ? await audited(
          opened.db,
          { operation: 'rewind', request: { chain: chainText(at), to } },
          run,
        )
      : await run()
    print(
      shell,
      isDone
        ? 'Done. The tracker continues from this block.'
        : 'Nothing was changed. Add --yes to do it.',
    )
  })
}

function describe(plan: RewindPlan, name: string): string[] {
  const { cursor, to, transfers, organizations, notified, waiting } = plan
  const number = (value: number) => value.toLocaleString('en')
  return [
    `${name}: from block ${number(cursor.number)} back to block ${number(to.number)} (0x${to.hash.toString('hex')}).`,
    `Transfers that leave the lists: ${number(transfers)}, of ${number(organizations)} organizations.`,
    `Notifications that are followed by TRANSFER_STATE_REORGED: ${number(notified)}.`,
    `Notifications that are not sent any more: ${number(waiting)}.`,
  ]
}
