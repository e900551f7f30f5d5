import { findByDomainOrId, revokeCredential } from '../../domain/admin/operator.ts'
import { isUuid } from '../../lib/ids.ts'
import { audited } from '../audited.ts'
import { everyPage, withLocal } from '../local.ts'
import { type GlobalOptions, note, print, printJson, type Shell } from '../shell.ts'
import { formatRecord, formatTable } from '../table.ts'

type Options = GlobalOptions & { json?: boolean }

/** Lists the keys of an organization. */
export const listKeys = (shell: Shell, organization: string, options: Options): Promise<void> =>
  withLocal(shell, options, async ({ context, run }) => {
    const { organization_id } = await findByDomainOrId(context, organization)
    const all = await everyPage(async (page) => {
      const answer = await run('ListCredentials', { organization_id, ...page })
      return { items: answer.credentials, next: answer.pagination.next_page_token }
    })
    if (options.json) return printJson(shell, all)
    const rows = all.map((key) => [
      key.credential_id,
      key.api_key_hint,
      roleText(key.role),
      key.create_time,
      key.last_used_time ?? 'never',
      key.name,
    ])
    print(shell, formatTable(['ID', 'KEY', 'ROLE', 'CREATED', 'LAST USED', 'NAME'], rows))
  })

/** Creates a key and shows both halves, this once. */
export const createKey = (
  shell: Shell,
  organization: string,
  options: Options & { role: 'ROLE_ADMIN' | 'ROLE_MEMBER'; name?: string },
): Promise<void> =>
  withLocal(shell, options, async ({ context, run }) => {
    const { organization_id, domain } = await findByDomainOrId(context, organization)
    const { role, name } = options
    const request = { organization_id, role, ...(name !== undefined && { name }) }
    const { credential } = await run('CreateCredential', request)
    const { api_key, api_secret } = credential
    if (options.json) printJson(shell, credential)
    else
      print(
        shell,
        formatRecord({ api_key, api_secret, organization: domain, role: roleText(role) }),
      )
    note(shell, 'Keep the secret now: it is sealed in the database and never shown again.')
  })

/** Deletes a key by its id or by the key itself. */
export const deleteKey = (shell: Shell, key_or_id: string, options: Options): Promise<void> =>
  withLocal(shell, options, async ({ context }) => {
    const request = isUuid(key_or_id) ? { credential_id: key_or_id } : { api_key: key_or_id }
    await audited(context.db, { operation: 'keys delete', request }, () =>
      revokeCredential(context, key_or_id),
    )
    note(shell, 'The key is deleted.')
  })

const roleText = (role: string): string => (role === 'ROLE_ADMIN' ? 'admin' : 'member')
