import { expect, test } from 'vitest'
import { systemIds } from '../../lib/ids.ts'
import { makeEvent } from './event.ts'
import { createTally } from './tally.ts'

const open = (limits: { maxClients?: number; maxRefused?: number } = {}) => {
  let now = 1_700_000_000_000
  const clock = { now: () => now, sleep: async () => {} }
  const make = (subject: Parameters<typeof makeEvent>[1]) =>
    makeEvent({ clock, ids: systemIds }, subject)
  const tally = createTally({ clock, make, ...limits })
  const next = () => {
    now += 60_000
    return tally.takeEnded().map(({ detail, event_count, reason, operation }) => ({
      ...{ client: JSON.parse(detail).client, event_count, reason, operation },
    }))
  }
  return { tally, next }
}

test('failed authentications become one event for each client and minute', () => {
  const { tally, next } = open()
  for (let count = 0; count < 5; count++) tally.unauthenticated('192.0.2.1', 'c', 'UNAUTHENTICATED')
  tally.unauthenticated('192.0.2.2', 'c', 'UNAUTHENTICATED')
  expect(tally.takeEnded()).toEqual([])
  expect(next()).toEqual([
    { client: '192.0.2.1', event_count: 5, reason: 'UNAUTHENTICATED', operation: 'Authenticate' },
    { client: '192.0.2.2', event_count: 1, reason: 'UNAUTHENTICATED', operation: 'Authenticate' },
  ])
  expect(next()).toEqual([])
})

test('clients beyond the limit share one event, and take no place from refused callers', () => {
  const { tally, next } = open({ maxClients: 3, maxRefused: 2 })
  for (let client = 0; client < 1_000; client++)
    tally.unauthenticated(`192.0.2.${client}`, 'c', 'UNAUTHENTICATED')
  const principal = {
    credential_id: systemIds.uuid(),
    organization_id: systemIds.uuid(),
    role: 'ROLE_MEMBER' as const,
  }
  for (const operation of ['SetRateLimit', 'CreateOrganization', 'CreateCredential'])
    tally.refused(
      { actor_type: 'ACTOR_TYPE_CREDENTIAL', principal, client: 'x', service: 'admin', operation },
      'PERMISSION_DENIED',
    )
  const events = next()
  expect(events.map(({ client, event_count }) => [client, event_count])).toEqual([
    ['192.0.2.0', 1],
    ['192.0.2.1', 1],
    ['192.0.2.2', 1],
    ['*', 997],
    ['x', 1],
    ['x', 1],
    ['*', 1],
  ])
})
