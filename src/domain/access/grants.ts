// No credential can be given more than its giver has. Every field is compared on its own, and all that is too much is named at once.

import { type FieldError, OperationError } from '../../contract/errors/errors.ts'
import { includesRole, type Role } from '../../contract/roles.ts'
import { coversScope } from '../../contract/scopes.ts'
import { invalidRequest } from '../../contract/validate.ts'
import { createSubnetList, parseAddress, parseSubnet, type Subnet } from '../../lib/net/ip.ts'
import type { CredentialLimits } from '../../storage/access/credentials.ts'
import type { CredentialRow } from '../../storage/access/tables.ts'
import type { Principal } from './principal.ts'

/** All that a credential may do; null is not restricted. */
export type Grant = { role: Role } & CredentialLimits

/** The fields of requests that restrict a credential. */
export type RequestedLimits = {
  scopes?: string[]
  allowed_client_networks?: string[]
  expire_time?: string
}

const everywhere = ['0.0.0.0/0', '::/0'] as const

/** What a caller may do, and so at most give. */
export const grantOf = ({ role, restrictions }: Principal): Grant => ({
  role,
  scopes: restrictions?.scopes ? [...restrictions.scopes] : null,
  allowed_client_networks: restrictions?.allowed_client_networks
    ? [...restrictions.allowed_client_networks]
    : null,
  expire_time:
    restrictions && Number.isFinite(restrictions.expireAt) ? new Date(restrictions.expireAt) : null,
})

/** The restrictions of a request, with defaults for those that it does not name; refuses invalid ones. */
export function readLimits(
  request: RequestedLimits,
  otherwise: CredentialLimits,
  now: number,
): CredentialLimits {
  const { scopes, allowed_client_networks, expire_time } = request
  return {
    scopes: scopes ? readScopes(scopes) : otherwise.scopes,
    allowed_client_networks: allowed_client_networks
      ? readNetworks(allowed_client_networks)
      : otherwise.allowed_client_networks,
    expire_time: expire_time === undefined ? otherwise.expire_time : readTime(expire_time, now),
  }
}

/** The restrictions as they are shown. */
export const presentLimits = (
  row: Pick<CredentialRow, 'scopes' | 'allowed_client_networks' | 'expire_time'>,
) => ({
  scopes: row.scopes ?? ['*'],
  allowed_client_networks: row.allowed_client_networks ?? [...everywhere],
  expire_time: row.expire_time?.toISOString() ?? null,
})

/** Every field in which something is wanted that is not held. */
export function exceeded(held: Grant, wanted: Grant): FieldError[] {
  const errors: FieldError[] = []
  const add = (field: string, detail: string) =>
    errors.push({ field, reason: 'GRANT_EXCEEDED', detail })
  if (!includesRole(held.role, wanted.role))
    add('role', `${wanted.role} is more than ${held.role}.`)
  // Null is unrestricted: only a restricted giver can exceed something.
  if (held.scopes) {
    const set = new Set(held.scopes)
    for (const scope of wanted.scopes ?? ['*'])
      if (!coversScope(set, scope)) add('scopes', `You do not have the scope ${scope}.`)
  }
  if (held.allowed_client_networks) {
    const subnets = held.allowed_client_networks.map(subnetOf)
    for (const network of wanted.allowed_client_networks ?? everywhere)
      if (!subnets.some((subnet) => contains(subnet, subnetOf(network))))
        add('allowed_client_networks', `${network} is not within your own networks.`)
  }
  // A credential must not outlive the one that made it.
  if (held.expire_time && !(wanted.expire_time && wanted.expire_time <= held.expire_time))
    add('expire_time', `Must not be after ${held.expire_time.toISOString()}, when you expire.`)
  return errors
}

/** Refuses to give more than the giver has. */
export function requireGrant(held: Grant, wanted: Grant): void {
  const errors = exceeded(held, wanted)
  if (errors.length === 0) return
  const fields = [...new Set(errors.map(({ field }) => field))]
  const detail = `More than you have yourself: ${fields.join(', ')}.`
  throw new OperationError('GRANT_EXCEEDED', { detail, errors })
}

const readScopes = (scopes: readonly string[]): string[] | null =>
  scopes.includes('*') ? null : [...new Set(scopes)].sort()

function readNetworks(texts: readonly string[]): string[] | null {
  const errors: FieldError[] = []
  const networks = texts.map((text, index) => {
    const subnet = parseSubnet(text)
    // An IPv4 client is judged by its IPv4 address: written inside IPv6, the network would never match.
    const isPlain = subnet && (!text.includes(':') || parseAddress(subnet[0])?.includes(':'))
    if (!subnet || !isPlain)
      errors.push({
        field: `allowed_client_networks[${index}]`,
        reason: 'INVALID_FORMAT',
        detail: 'Must be a network such as 192.0.2.0/24 or 2001:db8::/32, or one address.',
      })
    return subnet ? subnet.join('/') : ''
  })
  if (errors.length > 0) throw invalidRequest(errors)
  const distinct = new Set(networks)
  const isAny = [...distinct].some((one) => /^[\d.]+\/0$/.test(one))
  const isAny6 = [...distinct].some((one) => one.includes(':') && one.endsWith('/0'))
  return isAny && isAny6 ? null : [...distinct]
}

function readTime(text: string, now: number): Date {
  const time = Date.parse(text)
  const bad = (reason: string, detail: string) =>
    invalidRequest([{ field: 'expire_time', reason, detail }])
  if (Number.isNaN(time)) throw bad('INVALID_FORMAT', 'Is not a time.')
  if (time <= now) throw bad('OUT_OF_RANGE', 'Must be in the future.')
  return new Date(time)
}

const subnetOf = (text: string): Subnet => {
  const subnet = parseSubnet(text)
  if (!subnet) throw new Error(`The stored network ${text} is not one.`)
  return subnet
}

const contains = (outer: Subnet, inner: Subnet): boolean =>
  outer[0].includes(':') === inner[0].includes(':') &&
  inner[1] >= outer[1] &&
  createSubnetList([outer]).has(inner[0])
