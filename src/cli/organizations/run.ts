import { findByDomainOrId, setEnabled } from '../../domain/admin/operator.ts'
import { toTimestamp } from '../../lib/clock.ts'
import type { OrganizationRow } from '../../storage/access-tables.ts'
import { listOrganizations as listRows } from '../../storage/organizations.ts'
import { audited } from '../audited.ts'
import { withLocal } from '../local.ts'
import { type GlobalOptions, print, printJson, type Shell } from '../shell.ts'
import { formatRecord, formatTable } from '../table.ts'

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
      row.create_time,
      row.name,
    ])
    print(shell, formatTable(['DOMAIN', 'ID', 'STATUS', 'CREATED', 'NAME'], rows))
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
  withLocal(shell, options, async ({ context }) => {
    const { organization_id } = await findByDomainOrId(context, organization)
    const operation = enabled ? 'organizations enable' : 'organizations disable'
    const row = await audited(context.db, { operation, request: { organization_id } }, () =>
      setEnabled(context, organization_id, enabled),
    )
    show(shell, row, options)
  })

async function everyRow(db: Parameters<typeof listRows>[0]): Promise<OrganizationRow[]> {
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
