import { describe, expect, it } from 'vitest'
import {
  explain,
  type Failure,
  type Fault,
  hasLostDatabase,
  hasLostRedis,
  losesRedis,
} from './cluster-failures.ts'

const during = { from: 100_000, to: 105_000 }
const partition = (peer?: Fault['peer'], role = 'api'): Fault => ({
  ...{ kind: 'partition', role, peer, ...during },
})
const failure = (text: string, role: Failure['role'] = 'api'): Failure => ({
  ...{ from: 102_000, to: 102_050, role, text },
})

// What callers of the cluster write down (`cluster-load.ts`).
const answer = (status: number, reason: string) =>
  `c/RegisterWallet: ${status} {"status":${status},"reason":"${reason}"}`
const page = `c/RegisterWallet: SyntaxError: Unexpected token '<', "<html><bod"... is not valid JSON`
const broken = 'c/RegisterWallet: TypeError: fetch failed'
const cutOff = 'c/RegisterWallet: TypeError: terminated'
const hang = 'c/RegisterWallet: TimeoutError: The operation was aborted due to timeout'
const gatewayPage = '503 <html><body><h1>503 Service Unavailable</h1>\nNo server is available'
const gatewayBroken = '0 TypeError: fetch failed Error: read ECONNRESET'
const gatewayHang = '0 TimeoutError: The operation was aborted due to timeout undefined'
const gatewayAnswer = (status: number, reason: string) =>
  `${status} {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"data":{"reason":"${reason}"}}}`

describe('a cut pair explains', () => {
  it.each<[string, Fault['peer'], string]>([
    ['a page of the load balancer', 'balancer', page],
    ['a broken connection with it', 'balancer', broken],
    ['an answer that it breaks off', 'balancer', cutOff],
    ['a wait for it', 'balancer', hang],
    ['that the database is unavailable', 'pooler', answer(503, 'DATABASE_UNAVAILABLE')],
    ['that nodes are unavailable', 'node', answer(503, 'UPSTREAM_UNAVAILABLE')],
  ])('%s', (_, peer, text) => {
    expect(explain(failure(text), [partition(peer)])).toBe('on_cut_off')
    expect(explain(failure(text), [partition(peer, 'gateway')])).toBeUndefined()
    expect(explain({ ...failure(text), from: 110_000, to: 110_050 }, [partition(peer)])).toBe(
      undefined,
    )
  })

  it.each([gatewayPage, gatewayPage.replaceAll('503', '504'), gatewayBroken, gatewayHang])(
    'to a gateway: %s',
    (text) => {
      expect(explain(failure(text, 'gateway'), [partition('balancer', 'gateway')])).toBe(
        'on_cut_off',
      )
    },
  )
})

describe('a cut pair does not explain', () => {
  it.each<[string, Fault['peer'], string]>([
    ['that the database is unavailable', 'balancer', answer(503, 'DATABASE_UNAVAILABLE')],
    ['a refused signature', 'balancer', answer(401, 'UNAUTHENTICATED')],
    ['another answer of the service', 'balancer', answer(504, 'UPSTREAM_TIMEOUT')],
    ['an answer that is no JSON', 'balancer', 'c/X: SyntaxError: Unexpected end of JSON input'],
    ['a request that hangs', 'pooler', hang],
    ['a broken connection', 'pooler', broken],
    ['a page of the load balancer', 'pooler', page],
    ['a refused signature', 'pooler', answer(401, 'UNAUTHENTICATED')],
    ['that the database is unavailable', 'node', answer(503, 'DATABASE_UNAVAILABLE')],
    ['that the database is unavailable', 'server', answer(503, 'DATABASE_UNAVAILABLE')],
    ['that the database is unavailable', 'redis', answer(503, 'DATABASE_UNAVAILABLE')],
  ])('%s: %s', (_, peer, text) => {
    expect(explain(failure(text), [partition(peer)])).toBeUndefined()
  })

  it.each<[Fault['peer'], string]>([
    ['balancer', gatewayAnswer(401, 'INVALID_KEY')],
    ['balancer', gatewayAnswer(503, 'DATABASE_UNAVAILABLE')],
    ['pooler', gatewayHang],
    ['pooler', gatewayAnswer(503, 'DATABASE_UNAVAILABLE')],
  ])('to a gateway: %s', (peer, text) => {
    expect(explain(failure(text, 'gateway'), [partition(peer, 'gateway')])).toBeUndefined()
  })
})

const whole = partition()
const killed: Fault = { kind: 'kill -9', role: 'api', from: 102_010, to: 104_000 }
const paused: Fault = { kind: 'SIGSTOP beyond the lease', role: 'api', ...during }
const down: Fault = { kind: 'PostgreSQL killed', ...during }
const stalled: Fault = { kind: 'machine stalled', ...during }

it.each<[string, Fault, string]>([
  ['in_flight_on_killed', killed, broken],
  ['on_paused', paused, hang],
  ['on_cut_off', whole, answer(503, 'DATABASE_UNAVAILABLE')],
  // The load balancer has no process left.
  ['on_cut_off', whole, page],
  ['database_down', down, page],
  // Signed before the start of PostgreSQL.
  ['database_down', down, answer(401, 'UNAUTHENTICATED')],
  ['database_down', { ...down, kind: 'PgBouncer killed' }, answer(503, 'DATABASE_UNAVAILABLE')],
  ['machine_stalled', stalled, hang],
])('%s', (reason, fault, text) => {
  expect(explain(failure(text), [fault])).toBe(reason)
})

it('a request that begins while a killed process still exits is explained, a later one is not', () => {
  const late = { ...failure(broken), from: 102_300, to: 102_400 }
  expect(explain(late, [killed])).toBeUndefined()
  expect(explain(late, [{ ...killed, exited: 102_250 }])).toBe('in_flight_on_killed')
  expect(explain(late, [{ ...killed, exited: 102_150 }])).toBeUndefined()
})

it('the database is lost from its end until processes may have connected again', () => {
  const lost = (from: number, fault = down) => hasLostDatabase([fault], { from, to: from + 1_000 })
  expect([98_000, 99_500, 104_000, 108_500, 109_500].map((from) => lost(from))).toEqual([
    ...[false, true, true, true, false],
  ])
  expect(lost(104_000, { ...down, kind: 'Redis killed' })).toBe(false)
})

it('Redis is lost from its end until processes may have connected again, and for gateways that are cut off from it', () => {
  const lost = (fault: Fault, from: number) => hasLostRedis([fault], { from, to: from + 1_000 })
  const killedRedis = { ...down, kind: 'Redis killed' }
  expect([98_000, 99_500, 108_500, 109_500].map((from) => lost(killedRedis, from))).toEqual([
    ...[false, true, true, false],
  ])
  expect(lost(partition('redis', 'gateway'), 104_000)).toBe(true)
  expect(lost(partition('pooler', 'gateway'), 104_000)).toBe(false)
  expect(lost(down, 104_000)).toBe(false)
})

it('a page that says that all gateways are cut off is explained', () => {
  const fault = partition(undefined, 'gateway')
  expect(explain(failure(gatewayPage, 'gateway'), [fault])).toBe('on_cut_off')
})

it('nothing explains an internal error', () => {
  const faults = [killed, paused, whole, down, stalled, partition('balancer'), partition('pooler')]
  for (const { role, text } of [
    failure(answer(500, 'INTERNAL')),
    failure(gatewayAnswer(500, 'INTERNAL'), 'gateway'),
  ])
    for (const fault of faults)
      expect(explain(failure(text, role), [{ ...fault, role }])).toBeUndefined()
})

it('no cut explains a refused signature or key', () => {
  expect(explain(failure(answer(401, 'UNAUTHENTICATED')), [whole])).toBeUndefined()
  const refused = failure(gatewayAnswer(401, 'INVALID_KEY'), 'gateway')
  expect(explain(refused, [partition(undefined, 'gateway')])).toBeUndefined()
})

it.each<[boolean, Fault]>([
  [true, { kind: 'Redis killed', ...during }],
  [true, { kind: 'Redis flushed', ...during }],
  [true, partition(undefined, 'gateway')],
  [true, partition('redis', 'gateway')],
  [false, partition('pooler', 'gateway')],
  [false, partition('balancer', 'gateway')],
  [false, partition('redis', 'api')],
  [false, partition(undefined, 'tracker')],
  [false, { kind: 'kill -9', role: 'gateway', ...during }],
])('limits of gateways are without Redis: %s', (expected, fault) => {
  expect(losesRedis(fault)).toBe(expected)
})
