/** What the signing key of the audit log is sealed for. */
export const auditKeyContext = 'audit_chain:private_key'
