import { describe, expect, it } from 'vitest'
import { refused } from '../gateway/rpc/answer.ts'
import { refuse } from '../gateway/rpc/rpc-error.ts'
import { alone } from '../gateway/rpc/served.ts'
import { silentLog } from '../lib/log.ts'
import { type AccessShares, createAccessLog } from './access-log.ts'
import { noFacts } from './exchange.ts'
import { createRoutes } from './routes.ts'

const principal = { organization_id: 'o', credential_id: 'k', role: 'ROLE_MEMBER' as const }
const network = {
  chain: 'c',
  network: 'mainnet',
  methodName: (name: string) => (name.startsWith('eth_') ? name : 'other'),
}
const call = { request_id: 'r', client: '192.0.2.1', network, principal, body: '' }
const rpc = (method: string) => ({ jsonrpc: '2.0', id: 1, method })
const answer = { ...alone(refused(refuse('INTERNAL'))), status: 200, body: '{"result":"0x1"}' }

const open = (shares: AccessShares, random?: () => number) => {
  const lines: Record<string, unknown>[] = []
  const write = (level: string) => (fields: object, msg: string) =>
    void lines.push({ level, msg, ...fields })
  const log = { ...silentLog, info: write('info'), debug: write('debug') }
  const routes = createRoutes({})
  const access = createAccessLog({ log, routes, shares: () => shares, ...(random && { random }) })
  return { access, lines }
}

const finished = {
  ...{ route: 'operations', path: '/v1/c/GetWallet', status: 404, seconds: 0.0123456 },
  ...{ request_id: 'r', client: '192.0.2.1' },
  facts: {
    request_id: 'r',
    principal,
    reason: 'WALLET_NOT_FOUND' as const,
    bytes_in: 10,
    bytes_out: 200,
    trace_id: undefined,
  },
}

describe('the access log', () => {
  it('has one line per operation with the caller, the outcome and the request id', () => {
    const { access, lines } = open({ operations: 1, gateway: 0 })
    access.finished(finished)
    expect(lines).toEqual([
      {
        ...{ level: 'info', msg: 'request finished', request_id: 'r', client: '192.0.2.1' },
        ...{ organization_id: 'o', credential_id: 'k' },
        ...{ operation: 'GetWallet', chain: 'c', network: undefined },
        ...{ status: 404, reason: 'WALLET_NOT_FOUND' },
        ...{ duration_ms: 12.346, bytes_in: 10, bytes_out: 200 },
      },
    ])
  })

  it('never shows the path of another route, which may contain a key', () => {
    const { access, lines } = open({ operations: 1, gateway: 1 })
    access.finished({ ...finished, route: 'none', path: '/c/mainnet/v2/plk_secret' })
    access.finished({ ...finished, path: '/v1/plk_secret' })
    expect(lines.map(({ level }) => level)).toEqual(['debug', 'info'])
    expect(JSON.stringify(lines)).not.toContain('plk_secret')
  })

  it('follows the share of operations', () => {
    const random = [0.3, 0.7]
    const { access, lines } = open({ operations: 0.5, gateway: 0 }, () => random.shift()!)
    access.finished({ ...finished, request_id: 'shown' })
    access.finished({ ...finished, request_id: 'omitted' })
    expect(lines.map(({ request_id }) => request_id)).toEqual(['shown'])
  })

  it('does no work for the gateway while it is off, and asks for no random number', () => {
    const { access } = open({ operations: 1, gateway: 0 }, () => {
      throw new Error('asked')
    })
    expect(access.isSampled()).toBe(false)
  })

  it('shows method, bytes and cache of a sampled gateway call after its answer', () => {
    const { access, lines } = open({ operations: 0, gateway: 1 })
    expect(access.isSampled()).toBe(true)
    const order: string[] = []
    const body = JSON.stringify(rpc('eth_call'))
    const done = access.follow({ ...call, body }, () => order.push(`${lines.length} lines`))
    done({ ...answer, hit: true })
    expect(order).toEqual(['0 lines'])
    expect(lines).toEqual([
      {
        ...{ level: 'info', msg: 'gateway call', request_id: 'r', client: '192.0.2.1' },
        ...{ organization_id: 'o', credential_id: 'k', chain: 'c', network: 'mainnet' },
        ...{ method: 'eth_call', status: 200, hit: true, duration_ms: expect.any(Number) },
        ...{ bytes_in: body.length, bytes_out: 16 },
      },
    ])
  })

  it.each([
    ['a batch', JSON.stringify([rpc('eth_a'), rpc('eth_b'), rpc('eth_a')]), 'eth_a,eth_b', 3],
    [
      'a name that the gateway does not know',
      JSON.stringify(rpc('plk_secret')),
      'other',
      undefined,
    ],
    ['no JSON', '{"method":"plk_secret"', 'unread', undefined],
    ['no object', '"plk_secret"', 'other', undefined],
    ['null in a batch', '[null]', 'other', 1],
    [
      'a large body',
      JSON.stringify({ ...rpc('eth_a'), x: 'x'.repeat(20_000) }),
      'unread',
      undefined,
    ],
  ])('shows known names of methods only: %s', (_what, body, method, calls) => {
    const { access, lines } = open({ operations: 0, gateway: 1 })
    access.follow({ ...call, body, isSocket: true }, () => {})(answer)
    expect(lines).toMatchObject([{ method, transport: 'websocket', ...(calls && { calls }) }])
    expect(JSON.stringify(lines)).not.toContain('plk_secret')
  })

  it('shows the reason of a refusal, and no caller where the key is not known', () => {
    const { access, lines } = open({ operations: 0, gateway: 1 })
    const served = alone(refused(refuse('INVALID_KEY')))
    access.follow({ ...call, principal: undefined }, () => {})(served)
    expect(lines).toMatchObject([{ status: 401, reason: 'INVALID_KEY', bytes_in: 0 }])
    expect(lines[0]).not.toHaveProperty('organization_id')
  })

  it('shows nothing of a request of which nothing is known', () => {
    const { access, lines } = open({ operations: 1, gateway: 0 })
    access.finished({ ...finished, route: '/health', facts: noFacts('r') })
    expect(lines).toMatchObject([{ level: 'debug', route: '/health', bytes_in: 0 }])
  })
})
