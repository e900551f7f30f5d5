import { expect, test } from 'vitest'
import { systemIds } from '../../lib/ids.ts'
import { makeEvent } from './event.ts'
import { createTally } from './tally.ts'

const open = (limits: Partial<Parameters<typeof createTally>[0]> = {}) => {
  let now = 1_700_000_000_000
  const clock = { now: () => now, sleep: async () => {} }
  const make = (subject: Parameters<typeof makeEvent>[1]) =>
    makeEvent({ clock, ids: systemIds }, subject)
  const tally = createTally({ clock, make, ...limits })
  const next = (minutes = 1) => {
    now += minutes * 60_000
    return tally.takeEnded().map(({ detail, event_count, reason, operation }) => ({
      ...{ client: JSON.parse(detail).client, event_count, reason, operation },
    }))
  }
  const pass = (minutes: number) => {
    now += minutes * 60_000
  }
  return { tally, next, pass }
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

test('the addresses of one IPv6 line share an event', () => {
  const { tally, next } = open({ maxClients: 3 })
  for (let host = 1; host <= 1_000; host++)
    tally.unauthenticated(`2001:db8:0:1::${host.toString(16)}`, 'c', 'INVALID_KEY')
  tally.unauthenticated('192.0.2.1', 'c', 'INVALID_KEY')
  expect(next().map(({ client, event_count }) => [client, event_count])).toEqual([
    ['2001:db8:0:1::/64', 1_000],
    ['192.0.2.1', 1],
  ])
})

test('a stranger with many addresses cannot fill the log: the events of an hour are bounded', () => {
  const { tally, next } = open({ maxClients: 10, maxClientsPerHour: 25 })
  next(60 - (Math.floor(1_700_000_000 / 60) % 60))
  const reasons = ['INVALID_KEY', 'UNAUTHENTICATED', 'TOO_MANY_FAILURES']
  let calls = 0
  const attack = () => {
    for (let client = 0; client < 100; client++)
      for (const service of ['admin', 'c', 'p', 's', 't'])
        for (const reason of reasons) {
          calls++
          tally.unauthenticated(`192.0.2.${client}`, service, reason)
        }
    return next()
  }
  const events = Array.from({ length: 59 }, attack).flat()
  expect(events.filter(({ client }) => client !== '*')).toHaveLength(25)
  // Beyond that one event per reason and minute.
  expect(events).toHaveLength(25 + 59 * reasons.length)
  expect(events.reduce((sum, { event_count }) => sum + event_count, 0)).toBe(calls)
  next()
  expect(attack().filter(({ client }) => client !== '*')).toHaveLength(10)
})

test('events that cannot be stored are bounded in memory', () => {
  const { tally, pass } = open({ maxEnded: 4 })
  for (let minute = 0; minute < 10; minute++) {
    tally.unauthenticated('192.0.2.1', 'c', 'INVALID_KEY')
    pass(1)
  }
  expect(tally.takeEnded()).toHaveLength(4)
})
