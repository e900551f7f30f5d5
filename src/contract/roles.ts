/** What a credential may do, from the widest role to the narrowest. */
export const roles = ['ROLE_ADMIN', 'ROLE_OWNER', 'ROLE_MEMBER', 'ROLE_READER'] as const

/** One of the roles. */
export type Role = (typeof roles)[number]

/** Whether a role includes all that another one may do: they stand in one line. */
export const includesRole = (held: Role, wanted: Role): boolean =>
  roles.indexOf(held) <= roles.indexOf(wanted)
