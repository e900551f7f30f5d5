import { findAdminUrl } from '../admin-url.ts'
import { readStatus } from '../chains/run.ts'
import { usageError } from '../cli-error.ts'
import { type GlobalOptions, print, printJson, type Shell } from '../shell.ts'
import { columnsOf } from '../table.ts'
import { watchScreen } from '../watch.ts'
import { createScreen, type ShownStatus } from './screen.ts'

type Options = GlobalOptions & { watch?: boolean; json?: boolean; url?: string }

const everyMs = 2_000

/** Shows the state of the running service, once or until Ctrl-C. */
export async function runStatus(shell: Shell, options: Options): Promise<void> {
  if (options.watch && options.json) throw usageError('Give either --watch or --json.')
  const url = options.url ?? (await findAdminUrl(shell, options))
  const read = async () => (await readStatus(url)) as unknown as ShownStatus
  if (options.json) return printJson(shell, await read())
  const screen = createScreen({ stream: shell.stdout, columns: () => columnsOf(shell.stdout) })
  if (!options.watch) return print(shell, screen(await read(), performance.now()))
  await watchScreen(shell, everyMs, async () => screen(await read(), performance.now()))
}
