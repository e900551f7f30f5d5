import { setTimeout as delay } from 'node:timers/promises'
import { readConnectionFile } from '../call/target.ts'
import { readStatus } from '../chains/run.ts'
import { CliError, usageError } from '../cli-error.ts'
import { type GlobalOptions, print, printJson, type Shell } from '../shell.ts'
import { createScreen, type ShownStatus } from './screen.ts'

type Options = GlobalOptions & { watch?: boolean; json?: boolean; url?: string }

const everyMs = 2_000
const clear = '\u001b[H\u001b[2J'

/** Shows the state of the running service, once or until Ctrl-C. */
export async function runStatus(shell: Shell, options: Options): Promise<void> {
  if (options.watch && options.json) throw usageError('Give either --watch or --json.')
  const url = options.url ?? (await findAdminUrl(shell, options))
  const read = async () => (await readStatus(url)) as unknown as ShownStatus
  if (options.json) return printJson(shell, await read())
  const screen = createScreen({ stream: shell.stdout, columns: shell.stdout.columns || 80 })
  if (!options.watch) return print(shell, screen(await read(), performance.now()))
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  try {
    while (!stopping.signal.aborted) {
      const text = await read().then(
        (status) => screen(status, performance.now()),
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      )
      shell.stdout.write(`${shell.stdout.isTTY ? clear : ''}${text}\n`)
      await delay(everyMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  } finally {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
  }
}

async function findAdminUrl(shell: Shell, options: GlobalOptions): Promise<string> {
  const { admin_url } = await readConnectionFile(shell, options)
  if (admin_url !== undefined) return admin_url
  throw new CliError('The state of the service is not served: server.admin_listen is "off".')
}
