/** The parts of the service that a process may run, in the order in which they are shown. */
export const serverRoles = ['api', 'gateway', 'tracker', 'courier', 'sender', 'console'] as const

/** A part of the service that a process may run. */
export type ServerRole = (typeof serverRoles)[number]
