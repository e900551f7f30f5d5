import { describe, expect, it, onTestFinished } from 'vitest'
import { silentLog } from '../lib/log.ts'
import type { Finished } from './exchange.ts'
import { send } from './exchange.ts'
import { type Route, startServer } from './server.ts'

const open = async (routes: Route[]) => {
  const finished: Finished[] = []
  const server = await startServer({
    host: '127.0.0.1',
    port: 0,
    routes,
    log: silentLog,
    onFinished: (one) => finished.push(one),
    shutdownTimeoutMs: 1_000,
  })
  onTestFinished(server.stop)
  const url = `http://127.0.0.1:${server.address.port}`
  return { url, finished, server }
}

const text =
  (name: string): Route['handle'] =>
  (exchange) =>
    send(exchange, 200, {}, name)

describe('the server', () => {
  it('gives an exchange to the first route of its path: a whole one, or all below it', async () => {
    const { url } = await open([
      { path: '/a', name: 'whole', handle: text('whole') },
      { path: '/a/*', name: 'below', handle: text('below') },
      { path: '/a/b', name: 'late', handle: text('late') },
    ])
    const at = async (path: string) => (await fetch(url + path)).text()
    expect(await at('/a')).toBe('whole')
    expect(await at('/a?x=/a/b')).toBe('whole')
    expect(await at('/a/')).toBe('below')
    expect(await at('/a/b')).toBe('below')
    expect(JSON.parse(await at('/ab')).reason).toBe('ROUTE_NOT_FOUND')
  })

  it('answers a route that throws with a problem that gives nothing away', async () => {
    const { url } = await open([
      {
        path: '/sync',
        name: 'sync',
        handle: () => {
          throw new Error('hunter2')
        },
      },
      { path: '/async', name: 'async', handle: () => Promise.reject(new Error('hunter2')) },
    ])
    for (const path of ['/sync', '/async']) {
      const answer = await fetch(url + path)
      expect(answer.status).toBe(500)
      expect(await answer.text()).not.toContain('hunter2')
    }
  })

  it('reports every finished exchange by the name of its route', async () => {
    const { url, finished } = await open([{ path: '/a/*', name: 'below', handle: text('x') }])
    await (await fetch(`${url}/a/secret-key`)).text()
    await (await fetch(`${url}/none`)).text()
    await expect.poll(() => finished.length).toBe(2)
    expect(finished.map(({ route, status }) => [route, status])).toEqual([
      ['below', 200],
      ['none', 404],
    ])
    for (const { seconds } of finished) expect(seconds).toBeGreaterThan(0)
  })

  it('aborts the signal of an exchange whose caller hangs up', async () => {
    const aborted = Promise.withResolvers<unknown>()
    const begun = Promise.withResolvers<void>()
    const { url, finished } = await open([
      {
        path: '/slow',
        name: 'slow',
        handle: ({ signal }) => {
          signal.addEventListener('abort', () => aborted.resolve(signal.reason))
          begun.resolve()
          return new Promise(() => {})
        },
      },
    ])
    const caller = new AbortController()
    const call = fetch(`${url}/slow`, { signal: caller.signal }).catch(() => {})
    await begun.promise
    caller.abort()
    await call
    expect(await aborted.promise).toBeInstanceOf(Error)
    await expect.poll(() => finished.map(({ status }) => status)).toEqual([499])
  })

  it('does not answer twice when a route fails after its answer', async () => {
    const { url } = await open([
      {
        path: '/late',
        name: 'late',
        handle: (exchange) => {
          send(exchange, 200, {}, 'done')
          throw new Error('late')
        },
      },
    ])
    const answer = await fetch(`${url}/late`)
    expect([answer.status, await answer.text()]).toEqual([200, 'done'])
  })

  it('does not start on a port that is taken', async () => {
    const { server } = await open([])
    const second = startServer({
      host: '127.0.0.1',
      port: server.address.port,
      routes: [],
      log: silentLog,
      onFinished: () => {},
    })
    await expect(second).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })
})
