// Credentials from the command line. A secret is printed to the standard output once and never logged; notes for the
// person go to the standard error, so that the output can be piped.

import type { Role } from '../../contract/roles.ts'
import { findByDomainOrId, revokeCredential } from '../../domain/admin/operator.ts'
import { isUuid } from '../../lib/ids.ts'
import { audited } from '../audited.ts'
import { everyPage, withLocal } from '../local.ts'
import { type GlobalOptions, note, print, printJson, type Shell } from '../shell.ts'
import { columnsOf, formatRecord, formatTable } from '../table.ts'

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
      key.expire_time ?? 'never',
      key.last_used_time ?? 'never',
      key.scopes.join(' '),
      key.name,
    ])
    const names = ['ID', 'KEY', 'ROLE', 'CREATED', 'EXPIRES', 'LAST USED', 'SCOPES', 'NAME']
    print(shell, formatTable(names, rows, columnsOf(shell.stdout)))
  })

/** Creates a key and shows both halves, this once. */
export const createKey = (
  shell: Shell,
  organization: string,
  options: Options & { role: Role } & Restricting,
): Promise<void> =>
  withLocal(shell, options, async ({ context, run }) => {
    const { organization_id, domain } = await findByDomainOrId(context, organization)
    const { role } = options
    const request = { organization_id, role, ...restrictionsOf(options) }
    const { credential } = await run('CreateCredential', request)
    const { api_key, api_secret } = credential
    if (options.json) printJson(shell, credential)
    else
      print(
        shell,
        formatRecord({ api_key, api_secret, organization: domain, role: roleText(role) }),
      )
    note(shell, 'Store the secret now: it is encrypted in the database and not shown again.')
  })

/** Changes what a key is called and restricted to. */
export const updateKey = (
  shell: Shell,
  credential_id: string,
  options: Options & Restricting,
): Promise<void> =>
  withLocal(shell, options, async ({ run }) => {
    const remove_expire_time = options.expires === 'never'
    const request = { credential_id, ...restrictionsOf(options), remove_expire_time }
    const { credential } = await run('UpdateCredential', request)
    const { name, scopes, allowed_client_networks, expire_time } = credential
    const shown = { name, scopes: scopes.join(' '), from: allowed_client_networks.join(' ') }
    print(shell, formatRecord({ ...shown, expires: expire_time ?? 'never' }))
  })

/** Replaces a key by a new pair and shows both halves once. */
export const rotateKey = (
  shell: Shell,
  credential_id: string,
  options: Options & { overlap: number },
): Promise<void> =>
  withLocal(shell, options, async ({ run }) => {
    const request = { credential_id, overlap_seconds: options.overlap }
    const { credential } = await run('RotateCredential', request)
    const { api_key, api_secret, role } = credential
    const shown = { api_key, api_secret, credential_id: credential.credential_id }
    if (options.json) printJson(shell, credential)
    else print(shell, formatRecord({ ...shown, role: roleText(role) }))
    note(shell, `The old key ends in ${options.overlap} seconds. Keep the new secret now.`)
  })

// Not by the operation: an operator may have nothing but a leaked key, and does not know its organization.
/** Deletes a key by its id or by the key itself. */
export const revokeKey = (shell: Shell, key_or_id: string, options: Options): Promise<void> =>
  withLocal(shell, options, async ({ context }) => {
    const request = isUuid(key_or_id) ? { credential_id: key_or_id } : { api_key: key_or_id }
    await audited(context.db, { operation: 'keys revoke', request }, (concerns) =>
      revokeCredential({ ...context, concerns }, key_or_id),
    )
    note(shell, 'The key is revoked.')
  })

type Restricting = { name?: string; scope?: string[]; from?: string[]; expires?: string }

const restrictionsOf = ({ name, scope, from, expires }: Restricting) => ({
  ...(name !== undefined && { name }),
  ...(scope && { scopes: scope }),
  ...(from && { allowed_client_networks: from }),
  ...(expires !== undefined && expires !== 'never' && { expire_time: expires }),
})

const roleText = (role: string): string => role.replace('ROLE_', '').toLowerCase()
