import { InvalidArgumentError } from 'commander'
import { type ServerRole, serverRoles } from '../app/config/server-roles.ts'
import { type Role, roles } from '../contract/roles.ts'

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
export function parseRole(text: string): Role {
  const name = `ROLE_${text.toUpperCase().replace(/^ROLE_/, '')}`
  const role = roles.find((known) => known === name)
  if (role) return role
  throw new InvalidArgumentError('A role is "admin", "owner", "member" or "reader".')
}

const unitSeconds = { s: 1, m: 60, h: 3_600, d: 86_400 } as const

/** Reads a length of time such as `90m`, in seconds. */
export function parseSeconds(text: string): number {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (count === undefined)
    throw new InvalidArgumentError('A length of time is a number with s, m, h or d: 90d, 12h.')
  return Number(count) * unitSeconds[unit as keyof typeof unitSeconds]
}

/** Reads when something ends: a length of time from now, a time, or `never`. */
export function parseExpiry(text: string): string {
  if (text === 'never' || /^\d{4}-\d\d-\d\dT/.test(text)) return text
  return new Date(Date.now() + parseSeconds(text) * 1000).toISOString()
}

/** Reads what a process runs. */
export function parseServerRoles(text: string): ServerRole[] {
  const names = text.toLowerCase().split(',')
  const wrong = names.find((name) => !serverRoles.some((known) => known === name))
  if (wrong !== undefined)
    throw new InvalidArgumentError(`Roles of a process are ${serverRoles.join(', ')}.`)
  return serverRoles.filter((role) => names.includes(role))
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

/** Reads one local chain. */
export function parseChain(text: string): LocalChain {
  const tag = localChains.find((known) => known === text.toLowerCase())
  if (tag === undefined)
    throw new InvalidArgumentError(`A local chain is one of ${localChains.join(', ')}.`)
  return tag
}

/** Reads an amount in the smallest unit. */
export function parseAmount(text: string): bigint {
  if (!/^\d{1,39}$/.test(text) || BigInt(text) === 0n)
    throw new InvalidArgumentError('An amount is a positive whole number in the smallest unit.')
  return BigInt(text)
}

/** Reads how many blocks are replaced. */
export function parseDepth(text: string): number {
  const depth = /^\d{1,2}$/.test(text) ? Number(text) : 0
  if (depth < 1 || depth > 64) throw new InvalidArgumentError('A depth is a number from 1 to 64.')
  return depth
}

/** Reads how many rows a list has. */
export function parseRows(text: string): number {
  const rows = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (rows < 1 || rows > 100)
    throw new InvalidArgumentError('The number of rows is a number from 1 to 100.')
  return rows
}
