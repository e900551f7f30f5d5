// What a credential may do, in one place for operations, gateway and event streams: role, scopes, client networks and expiry.

import { accessOf, roleFor, roleMayCall } from '../../contract/access.ts'
import { OperationError, type Reason } from '../../contract/errors/errors.ts'
import type { Entry } from '../../contract/operations/catalogue.ts'
import { coversScope, gatewayScope, operationScope } from '../../contract/scopes.ts'
import type { Principal } from './principal.ts'

/** Why a caller may not do something, in the words of the error table, and what it lacks. */
export type Denial = { reason: Reason; detail: string; missing?: string }

/** Whether a credential has expired. */
export const isExpired = ({ restrictions }: Principal, now: number): boolean =>
  restrictions !== undefined && restrictions.expireAt <= now

/** The refusal of an expired credential; said only to a caller that has shown that it holds it. */
export const expired = (): OperationError => new OperationError('CREDENTIAL_EXPIRED')

/** Refuses an operation that the caller may not call, or not from where it calls. */
export function authorizeOperation(
  principal: Principal,
  called: { entry: Entry; chain: string },
  client: string,
): void {
  deny(operationDenial(principal, called, client))
}

/** Refuses what administers the installation and is not an operation. */
export function authorizeAdministration(principal: Principal, client: string): void {
  const missing = 'ROLE_ADMIN'
  const detail = `This needs ${missing}; the credential has ${principal.role}.`
  if (principal.role !== missing) deny({ reason: 'PERMISSION_DENIED', detail, missing })
  deny(networkDenial(principal, client) ?? scopeDenial(principal, operationScope('admin', 'write')))
}

/** Why a caller may not read the events of a chain, or of the installation (`admin`); undefined where it may. */
export const eventsDenial = (
  principal: Principal,
  chain: string,
  client: string,
): Denial | undefined =>
  principal.restrictions &&
  (networkDenial(principal, client) ?? scopeDenial(principal, operationScope(chain, 'read')))

/** Refuses for a reason. */
export function deny(denial: Denial | undefined): void {
  if (!denial) return
  const { reason, detail, missing } = denial
  throw new OperationError(reason, { detail, ...(missing !== undefined && { extra: { missing } }) })
}

function operationDenial(
  principal: Principal,
  { entry, chain }: { entry: Entry; chain: string },
  client: string,
): Denial | undefined {
  if (!roleMayCall(principal.role, entry)) {
    const missing = roleFor(entry)
    const detail = `${entry.name} needs ${missing}; the credential has ${principal.role}.`
    return { reason: 'PERMISSION_DENIED', detail, missing }
  }
  if (!principal.restrictions) return undefined
  return (
    networkDenial(principal, client) ??
    scopeDenial(principal, operationScope(chain, accessOf(entry)))
  )
}

/** Why a key may not use a network of the gateway at all; undefined where it may. */
export function gatewayDenial(
  principal: Principal,
  { chain, network }: { chain: string; network: string },
  now: number,
  client: string,
): Denial | undefined {
  if (!principal.restrictions) return undefined
  if (isExpired(principal, now))
    return { reason: 'CREDENTIAL_EXPIRED', detail: 'The API key has expired.' }
  return (
    networkDenial(principal, client) ?? scopeDenial(principal, gatewayScope(chain, network, 'read'))
  )
}

/** Why a key may not send transactions through a network of the gateway; undefined where it may. */
export function sendingDenial(
  principal: Principal,
  { chain, network }: { chain: string; network: string },
): Denial | undefined {
  if (principal.role === 'ROLE_READER') {
    const missing = 'ROLE_MEMBER'
    const detail = `To send a transaction needs ${missing}; the key has ROLE_READER.`
    return { reason: 'PERMISSION_DENIED', detail, missing }
  }
  if (!principal.restrictions) return undefined
  return scopeDenial(principal, gatewayScope(chain, network, 'write'))
}

function scopeDenial({ restrictions }: Principal, missing: string): Denial | undefined {
  const scopes = restrictions?.scopes
  if (!scopes || coversScope(scopes, missing)) return undefined
  return {
    reason: 'SCOPE_MISSING',
    detail: `The credential does not have the scope ${missing}.`,
    missing,
  }
}

function networkDenial({ restrictions }: Principal, client: string): Denial | undefined {
  const networks = restrictions?.clientNetworks
  if (!networks || networks.has(client)) return undefined
  return {
    reason: 'CLIENT_NETWORK_NOT_ALLOWED',
    detail: `The address ${client} is in none of the networks that the credential may be used from.`,
    missing: client,
  }
}
