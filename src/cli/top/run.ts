import { listBusiest } from '../../storage/access/busiest.ts'
import { findAdminUrl } from '../admin-url.ts'
import { readStatus } from '../chains/run.ts'
import { type GlobalOptions, print, printJson, type Shell } from '../shell.ts'
import { withDatabase } from '../storage/with-database.ts'
import { columnsOf } from '../table.ts'
import { watchScreen } from '../watch.ts'
import { createTopScreen, nodesOf, type Snapshot } from './screen.ts'

type Options = GlobalOptions & { once?: boolean; json?: boolean; rows: number; url?: string }

const everyMs = 5_000

/** Shows the busiest, until Ctrl-C on a terminal and once elsewhere. */
export const runTop = (shell: Shell, options: Options): Promise<void> =>
  withDatabase(shell, options, async ({ db }) => {
    const readNodes = async () => {
      const url = options.url ?? (await findAdminUrl(shell, options))
      return nodesOf((await readStatus(url)).chains)
    }
    const read = async (): Promise<Snapshot> => {
      const day = new Date().toISOString().slice(0, 10)
      // Without a service on this machine the database still has the counts of all others.
      const missing = (error: unknown) => ({ problem: (error as Error).message })
      const [calls, nodes] = await Promise.all([listBusiest(db, day), readNodes().catch(missing)])
      return { ...calls, ...('problem' in nodes ? { nodes: [], ...nodes } : { nodes }) }
    }
    if (options.json) return printJson(shell, await read())
    const { stdout } = shell
    const screen = createTopScreen({
      ...{ stream: stdout, columns: () => columnsOf(stdout), rows: options.rows },
    })
    const show = async () => screen(await read(), performance.now())
    if (options.once || !stdout.isTTY) return print(shell, await show())
    await watchScreen(shell, everyMs, show)
  })
