import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { createServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { silentLog } from '../lib/log.ts'
import { adminAddress, adminListenFault, startAdminListener } from './admin-listener.ts'
import { loadConfig } from './config/load.ts'
import type { Overrides } from './config/schema.ts'

const configOf = (server: NonNullable<Overrides['server']>) =>
  loadConfig({ env: {}, cwd: '/', overrides: { server } })

const occupy = async () => {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return (server.address() as { port: number }).port
}

let reloadOutcome = 'applied'

const start = async (server: NonNullable<Overrides['server']>) => {
  const profiles = Promise.withResolvers<string>()
  const listener = await startAdminListener(
    configOf(server),
    {
      status: async () => ({ version: 'test' }),
      metrics: async () => ({ contentType: 'text/plain', text: 'metric 1\n' }),
      profile: () => profiles.promise,
      reload: async () => ({ outcome: reloadOutcome }),
    },
    { log: silentLog, onFinished: () => {} },
  )
  if (listener) onTestFinished(listener.stop)
  return { listener, profiles }
}

const ask = async (url: string, options: { method?: string; host?: string } = {}) => {
  const { method = 'GET', host } = options
  const headers = { connection: 'close', ...(host && { host }) }
  const [answer] = (await once(request(url, { method, headers }).end(), 'response')) as [
    IncomingMessage,
  ]
  answer.resume()
  return answer.statusCode
}

describe('the address of the operator', () => {
  it.each<[string, Overrides['server'], object | undefined]>([
    ['is beside the public one', {}, { host: '127.0.0.1', port: 4001 }],
    ['follows its port', { port: 4010 }, { host: '127.0.0.1', port: 4011 }],
    ['is on loopback wherever that one is', { host: '::' }, { host: '127.0.0.1', port: 4001 }],
    ['is any free port beside any free port', { port: 0 }, { host: '127.0.0.1', port: 0 }],
    ['may be chosen', { admin_listen: '10.0.0.1:9000' }, { host: '10.0.0.1', port: 9000 }],
    ['may be of IPv6', { admin_listen: '[::1]:9000' }, { host: '::1', port: 9000 }],
    ['may be off', { admin_listen: 'off' }, undefined],
  ])('%s', (_, server, expected) => {
    expect(adminAddress(configOf(server!))).toEqual(expected)
  })

  it.each(['4001', 'localhost', '::1:4001', '127.0.0.1:port', 'http://127.0.0.1:4001'])(
    'cannot be %s',
    (admin_listen) => {
      expect(() => configOf({ admin_listen })).toThrow('server.admin_listen')
    },
  )

  it('is refused by the name of its key when it is configured and taken', async () => {
    const admin_listen = `127.0.0.1:${await occupy()}`
    const sentence = `Cannot listen on server.admin_listen (${admin_listen})`
    expect((await adminListenFault(configOf({ admin_listen })))?.message).toContain(sentence)
    await expect(start({ admin_listen })).rejects.toThrow(sentence)
  })

  it('gives way when it is a default that another service has', async () => {
    const taken = await occupy()
    const { listener } = await start({ port: taken - 1 })
    expect(listener!.admin_url).not.toBe(`http://127.0.0.1:${taken}`)
    expect(await ask(`${listener!.admin_url}/metrics`)).toBe(200)
  })
})

describe('the routes of the operator', () => {
  it('answer requests that name their host, and no page of another site', async () => {
    const { listener } = await start({ port: 0 })
    for (const path of ['/status', '/metrics']) {
      expect(await ask(`${listener!.admin_url}${path}`)).toBe(200)
      expect(await ask(`${listener!.admin_url}${path}`, { host: 'localhost:4001' })).toBe(200)
      expect(await ask(`${listener!.admin_url}${path}`, { host: 'evil.example' })).toBe(403)
    }
  })

  it('reload the configuration on POST, and answer 422 when it was refused', async () => {
    const { listener } = await start({ port: 0 })
    const url = `${listener!.admin_url}/reload`
    expect(await ask(url)).toBe(405)
    expect(await ask(url, { method: 'POST', host: 'evil.example' })).toBe(403)
    expect(await ask(url, { method: 'POST' })).toBe(200)
    reloadOutcome = 'refused'
    expect(await ask(url, { method: 'POST' })).toBe(422)
  })

  it('record one profile at a time, for at most a minute, and only on request', async () => {
    const { listener, profiles } = await start({ port: 0 })
    const url = `${listener!.admin_url}/debug/cpu-profile`
    expect(await ask(url)).toBe(405)
    expect(await ask(`${url}?seconds=61`, { method: 'POST' })).toBe(400)
    expect(await ask(`${url}?seconds=0`, { method: 'POST' })).toBe(400)
    const first = ask(`${url}?seconds=60`, { method: 'POST' })
    // The first may still be on its way.
    await expect.poll(() => ask(`${url}?seconds=1`, { method: 'POST' })).toBe(429)
    profiles.resolve('{}')
    expect(await first).toBe(200)
    expect(await ask(url, { method: 'POST' })).toBe(200)
  })
})
