import { OperationError } from '../../contract/errors/errors.ts'
import { findCredentialById } from '../../storage/access/credentials.ts'
import { presentCredential } from '../admin/credentials.ts'
import { getOrganization, presentOrganization } from '../admin/organizations.ts'
import type { AdminHandler } from '../context.ts'

/** Shows the credential that signs the request. */
export const GetCurrentCredential: AdminHandler<'GetCurrentCredential'> = async (context) => {
  const { db, principal, overview } = context
  const row = await findCredentialById(db, principal.credential_id)
  if (!row) throw new OperationError('CREDENTIAL_NOT_FOUND')
  return {
    credential: presentCredential(context, row),
    organization: presentOrganization(await getOrganization(context, principal.organization_id)),
    embedded: overview?.isEmbedded ?? false,
  }
}
