import { InvalidArgumentError } from 'commander'

/** Reads a port; 0 takes any free one. */
export function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (!(port <= 65_535)) throw new InvalidArgumentError('A port is a number from 0 to 65535.')
  return port
}

/** Reads a limit: a count, `unlimited` or `blocked`. */
export function parseLimit(text: string): number {
  if (text === 'unlimited') return -1
  if (text === 'blocked') return 0
  const limit = /^(?:-1|\d{1,16})$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(limit))
    throw new InvalidArgumentError('A limit is a whole number, "unlimited" (-1) or "blocked" (0).')
  return limit
}

/** Reads a role by either of its names. */
export function parseRole(text: string): 'ROLE_ADMIN' | 'ROLE_MEMBER' {
  const role = text.toLowerCase().replace(/^role_/, '')
  if (role === 'admin') return 'ROLE_ADMIN'
  if (role === 'member') return 'ROLE_MEMBER'
  throw new InvalidArgumentError('A role is "admin" or "member".')
}
