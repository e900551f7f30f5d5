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

const localChains = ['c', 'q', 't', 's', 'p'] as const

/** A local chain of the embedded mode. */
export type LocalChain = (typeof localChains)[number]

/** Reads a list of local chains; `none` is the empty one. */
export function parseChains(text: string): LocalChain[] {
  if (text === 'none') return []
  const tags = text.toLowerCase().split(',')
  const wrong = tags.find((tag) => !localChains.some((known) => known === tag))
  if (wrong !== undefined)
    throw new InvalidArgumentError(`Local chains are ${localChains.join(', ')}, or none.`)
  return localChains.filter((tag) => tags.includes(tag))
}

/** All local chains, in the order in which they are shown. */
export const allLocalChains: readonly LocalChain[] = localChains
