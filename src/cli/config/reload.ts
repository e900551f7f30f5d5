import type { ReloadOutcome } from '../../app/reload/reload.ts'
import { readConnectionFile } from '../call/target.ts'
import { CliError } from '../cli-error.ts'
import { type GlobalOptions, print, printJson, type Shell } from '../shell.ts'

type ReloadOptions = GlobalOptions & { url?: string; json?: boolean }

// A reload may wait for calls on what it removes.
const patienceMs = 120_000

/** Lets the running service read its configuration again, and shows what that changed. */
export async function reloadConfiguration(shell: Shell, options: ReloadOptions): Promise<void> {
  const outcome = await askReload(options.url ?? (await findAdminUrl(shell, options)))
  // The outcome is printed in any case; the exit code shows a refusal.
  if (options.json) printJson(shell, outcome)
  if (outcome.outcome === 'refused') throw new CliError(refusalText(outcome))
  if (!options.json) print(shell, outcomeText(outcome))
}

/** The address at which the service of the data directory takes a reload. */
async function findAdminUrl(shell: Shell, options: GlobalOptions): Promise<string> {
  const { admin_url } = await readConnectionFile(shell, options)
  if (admin_url !== undefined) return admin_url
  throw new CliError(
    'The service takes no reload here, because server.admin_listen is "off". Send SIGHUP to its process.',
  )
}

/** Asks a service at the address of its operator's routes to read its configuration again. */
export async function askReload(admin_url: string): Promise<ReloadOutcome> {
  const answer = await fetch(new URL('/reload', admin_url), {
    method: 'POST',
    signal: AbortSignal.timeout(patienceMs),
  }).catch((cause: unknown) => {
    throw new CliError(`The service at ${admin_url} does not answer. Is it running?`, { cause })
  })
  if (answer.status !== 200 && answer.status !== 422)
    throw new CliError(`The service at ${admin_url} answers with status ${answer.status}.`)
  return (await answer.json()) as ReloadOutcome
}

/** Why a reload changed nothing. */
export const refusalText = ({ problems }: ReloadOutcome): string =>
  ['Nothing was changed.', ...problems.map(({ message }) => message)].join('\n')

/** What a reload did, one line each. */
export function outcomeText(outcome: ReloadOutcome): string {
  const { added, changed, removed, settings, restart } = outcome
  const lines = [
    ...line('Added', added),
    ...line('Changed', [...changed, ...settings]),
    ...line('Removed', removed),
    ...line('Needs a restart', restart),
  ]
  return lines.length > 0 ? lines.join('\n') : 'Nothing differs from what runs.'
}

const line = (title: string, names: readonly string[]): string[] =>
  names.length > 0 ? [`${title}: ${names.join(', ')}`] : []
