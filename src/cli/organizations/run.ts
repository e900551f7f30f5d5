// Organizations from the command line. Changes run the operations of the API (`local.run`), so that both ways have the
// same rules and the same audit events. Lists read the rows: an operator may see what no operation shows.

import type { Catalogue } from '../../contract/operations/catalogue.ts'
import { findByDomainOrId } from '../../domain/admin/operator.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { listOrganizations as listRows } from '../../storage/access/organizations.ts'
import type { OrganizationRow } from '../../storage/access/tables.ts'
import { usageError } from '../cli-error.ts'
import { withLocal } from '../local.ts'
import { type GlobalOptions, note, print, printJson, type Shell } from '../shell.ts'
import { columnsOf, formatRecord, formatTable } from '../table.ts'

type Options = GlobalOptions & { json?: boolean }

/** Lists all organizations. */
export const listOrganizations = (shell: Shell, options: Options): Promise<void> =>
  withLocal(shell, options, async ({ context }) => {
    const all = (await everyRow(context.db)).map(present)
    if (options.json) return printJson(shell, all)
    const rows = all.map((row) => [
      row.domain,
      row.organization_id,
      row.disabled ? 'disabled' : 'enabled',
      // The day alone, so that a row fits into 80 columns.
      row.create_time.slice(0, 10),
      row.name,
    ])
    print(
      shell,
      formatTable(['DOMAIN', 'ID', 'STATUS', 'CREATED', 'NAME'], rows, columnsOf(shell.stdout)),
    )
  })

/** Creates an organization. */
export const createOrganization = (
  shell: Shell,
  domain: string,
  options: Options & { name?: string },
): Promise<void> =>
  withLocal(shell, options, async ({ run, context }) => {
    const name = options.name ?? domain
    const { organization } = await run('CreateOrganization', { name, domain })
    show(shell, await findByDomainOrId(context, organization.organization_id), options)
  })

/** Shows one organization. */
export const showOrganization = (
  shell: Shell,
  organization: string,
  options: Options,
): Promise<void> =>
  withLocal(shell, options, async ({ context }) =>
    show(shell, await findByDomainOrId(context, organization), options),
  )

/** Enables or disables an organization. */
export const setOrganizationEnabled = (
  shell: Shell,
  { organization, enabled }: { organization: string; enabled: boolean },
  options: Options,
): Promise<void> =>
  withLocal(shell, options, async ({ context, run }) => {
    const { organization_id } = await findByDomainOrId(context, organization)
    await run(enabled ? 'EnableOrganization' : 'DisableOrganization', { organization_id })
    show(shell, await findByDomainOrId(context, organization_id), options)
  })

/** Gives an organization another name or domain. */
export const renameOrganization = (
  shell: Shell,
  organization: string,
  options: Options & { name?: string; domain?: string },
): Promise<void> => {
  const { name, domain } = options
  if (name === undefined && domain === undefined) throw usageError('Give --name, --domain or both.')
  return withLocal(shell, options, async ({ context, run }) => {
    const { organization_id } = await findByDomainOrId(context, organization)
    await run('RenameOrganization', {
      organization_id,
      ...(name !== undefined && { name }),
      ...(domain !== undefined && { domain }),
    })
    show(shell, await findByDomainOrId(context, organization_id), options)
  })
}

/** Deletes an organization where that was agreed to. */
export const deleteOrganization = (
  shell: Shell,
  organization: string,
  options: Options & { yes?: boolean },
): Promise<void> =>
  withLocal(shell, options, async ({ context, run }) => {
    const { organization_id, domain } = await findByDomainOrId(context, organization)
    if (!options.yes)
      return note(
        shell,
        `Nothing was changed. Add --yes to delete ${domain} (${organization_id}) with all that it has; it cannot be undone.`,
      )
    const { deletion } = await run('DeleteOrganization', { organization_id, domain })
    showReport(shell, deletion, options)
  })

/** Shows the erase report. */
export const showDeletion = (
  shell: Shell,
  organization_id: string,
  options: Options,
): Promise<void> =>
  withLocal(shell, options, async ({ run }) => {
    const { deletion } = await run('GetOrganizationDeletion', { organization_id })
    showReport(shell, deletion, options)
  })

type Deletion = Catalogue<'admin'>['GetOrganizationDeletion']['response']['deletion']

function showReport(shell: Shell, deletion: Deletion, { json }: Options): void {
  if (json) {
    printJson(shell, deletion)
    return
  }
  const { erased, not_erased, ...fields } = deletion
  const texts = Object.entries(fields).map(([name, value]) => [name, String(value ?? 'not yet')])
  print(shell, formatRecord(Object.fromEntries(texts)))
  const rows = erased.map(({ table, rows }) => [table, rows.toLocaleString('en')])
  if (rows.length > 0)
    print(shell, `\n${formatTable(['TABLE', 'ROWS ERASED'], rows, columnsOf(shell.stdout))}`)
  print(shell, `\nNot erased, see to it yourself:\n${not_erased.map((at) => `- ${at}`).join('\n')}`)
}

async function everyRow(db: Parameters<typeof listRows>[0]): Promise<OrganizationRow[]> {
  // By pages, because a statement has a time limit.
  const all: OrganizationRow[] = []
  for (;;) {
    const page = await listRows(db, { after: all.at(-1), limit: 1000 })
    all.push(...page)
    if (page.length < 1000) return all
  }
}

const show = (shell: Shell, row: OrganizationRow, { json }: Options): void => {
  const { disabled, ...organization } = present(row)
  if (json) printJson(shell, { ...organization, disabled })
  else print(shell, formatRecord({ ...organization, status: disabled ? 'disabled' : 'enabled' }))
}

const present = (row: OrganizationRow) => ({
  organization_id: row.organization_id,
  name: row.name,
  domain: row.domain,
  create_time: toTimestamp(row.create_time),
  update_time: toTimestamp(row.update_time),
  disabled: row.disable_time !== null,
})
