import { findByDomainOrId } from '../../domain/admin/operator.ts'
import { usageError } from '../cli-error.ts'
import { readConfig } from '../configuration.ts'
import { type Local, withLocal } from '../local.ts'
import { type GlobalOptions, note, print, printJson, type Shell } from '../shell.ts'
import { columnsOf, formatTable } from '../table.ts'

type Options = GlobalOptions & { json?: boolean }
type Which = { organization: string; chain: string }
type Windows = { [name in (typeof windows)[number]]: number }
type Limit = { ratelimit_info: Windows & { chain: string } }

// In the order of the table; the names are those of the API.
const windows = ['per_second_limit', 'per_hour_limit', 'per_day_limit', 'per_month_limit'] as const

/** Lists the limits of an organization. */
export const listLimits = (shell: Shell, organization: string, options: Options): Promise<void> =>
  withLocal(shell, options, async (local) => {
    const organization_id = await idOf(local, organization)
    const { data } = await local.run('ListRateLimits', { organization_id })
    if (options.json) printJson(shell, data)
    else print(shell, tableOf(data, columnsOf(shell.stdout), readConfig(shell, options).limits))
  })

/** Shows one limit. */
export const getLimit = (
  shell: Shell,
  { organization, chain }: Which,
  options: Options,
): Promise<void> =>
  withLocal(shell, options, async (local) => {
    const organization_id = await idOf(local, organization)
    show(shell, await local.run('GetRateLimit', { organization_id, chain }), options)
  })

/** Sets a limit; windows that are not given stay as they apply now. */
export const setLimit = (
  shell: Shell,
  { organization, chain }: Which,
  options: Options & {
    perSecond?: number
    perHour?: number
    perDay?: number
    perMonth?: number
  },
): Promise<void> => {
  const { perSecond, perHour, perDay, perMonth } = options
  if ([perSecond, perHour, perDay, perMonth].every((limit) => limit === undefined))
    throw usageError('Give at least one of --per-second, --per-hour, --per-day and --per-month.')
  return withLocal(shell, options, async (local) => {
    const organization_id = await idOf(local, organization)
    const { data } = await local.run('ListRateLimits', { organization_id })
    const recordOf = (name: string) =>
      data.find(({ ratelimit_info }) => ratelimit_info.chain === name)?.ratelimit_info
    // SetRateLimit replaces the whole record, so windows that are not given are filled with what applies now.
    const now = recordOf(chain) ?? recordOf('*') ?? readConfig(shell, options).limits
    const answer = await local.run('SetRateLimit', {
      organization_id,
      chain,
      per_second_limit: perSecond ?? now.per_second_limit,
      per_hour_limit: perHour ?? now.per_hour_limit,
      per_day_limit: perDay ?? now.per_day_limit,
      per_month_limit: perMonth ?? now.per_month_limit,
    })
    show(shell, answer, options)
  })
}

/** Deletes one limit or all. */
export const deleteLimits = (
  shell: Shell,
  { organization, chain }: { organization: string; chain?: string },
  options: Options & { all?: boolean },
): Promise<void> => {
  if ((chain === undefined) !== (options.all === true))
    throw usageError('Name the chain whose limit shall be deleted, or give --all.')
  return withLocal(shell, options, async (local) => {
    const organization_id = await idOf(local, organization)
    await local.run('DeleteRateLimit', {
      organization_id,
      ...(chain !== undefined && { chain }),
    })
    note(shell, chain === undefined ? 'All limits are deleted.' : 'The limit is deleted.')
  })
}

const idOf = async ({ context }: Local, organization: string): Promise<string> =>
  (await findByDomainOrId(context, organization)).organization_id

const show = (shell: Shell, limit: Limit, { json }: Options): void => {
  if (json) printJson(shell, limit)
  else print(shell, tableOf([limit], columnsOf(shell.stdout)))
}

function tableOf(limits: readonly Limit[], columns: number, defaults?: Windows): string {
  const rowOf = (chain: string, values: Windows) => [
    chain,
    ...windows.map((name) => limitText(values[name])),
  ]
  const rows = limits.map(({ ratelimit_info }) => rowOf(ratelimit_info.chain, ratelimit_info))
  return formatTable(
    ['CHAIN', 'PER SECOND', 'PER HOUR', 'PER DAY', 'PER MONTH'],
    defaults ? [...rows, rowOf('(default)', defaults)] : rows,
    columns,
  )
}

// The values of the specification: a person easily takes 0 for unlimited.
const limitText = (limit: number): string =>
  limit === -1 ? 'unlimited' : limit === 0 ? 'blocked' : String(limit)
