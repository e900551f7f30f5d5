// Refusals of administration. What belongs to another organization is "not found" for everyone but administrators of the
// installation, so that ids cannot be probed.

import type { ErrorRow } from './row.ts'

/** Failures of administration; part of the one table of errors. */
export const organizationErrors = {
  ORGANIZATION_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Organization not found',
    help: 'No such organization, or it is not the one of the credential.',
  },
  CREDENTIAL_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Credential not found',
    help: 'The credential does not exist, belongs to another organization, or the secret is wrong.',
  },
  RATE_LIMIT_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32602,
    retry: 'never',
    title: 'Rate limit not found',
    help: 'The organization has no record of its own for this chain; the record `*` or the configured defaults apply.',
  },
  OWN_ORGANIZATION: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'It is the organization of the credential',
    help: 'Call with a credential of another organization, or use the command line: this credential could not undo the change.',
  },
  ORGANIZATION_DELETED: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'The organization is being deleted',
    help: 'A deletion cannot be undone. GetOrganizationDeletion shows its progress.',
  },
  DOMAIN_TAKEN: {
    status: 409,
    code: 'ALREADY_EXISTS',
    rpc: -32602,
    retry: 'never',
    title: 'Another organization has this domain',
    help: 'Choose another domain, or find the organization with GetOrganizationByDomain.',
  },
  QUOTA_EXCEEDED: {
    status: 409,
    code: 'FAILED_PRECONDITION',
    rpc: -32602,
    retry: 'never',
    title: 'The organization has as many as its quota allows',
    help: 'The answer has `quota_name`, `quota_limit` and `used`; GetUsage shows all quotas. Remove unused objects, or ask an administrator for a higher quota (SetQuota).',
  },
} as const satisfies Record<string, ErrorRow>
