import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { freePort } from '../helpers/free-port.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { read, root } from './expressions.ts'
import { needTool, runTool } from './tools.ts'

const program = 'haproxy'

/** A server that answers with its name and the address of the client as the proxy names it. */
const startNamed = async (name: string): Promise<number> => {
  const server = createServer((request, response) =>
    response.end(`${name} ${request.headers['x-forwarded-for'] ?? ''}`),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

it('accepts the configuration', (context) => {
  needTool(context, program, '-v')
  const { status, text } = runTool(program, [
    ...['-c', '-f', join(root, 'deploy/haproxy/haproxy.cfg')],
  ])
  expect([status, text]).toEqual([0, text])
})

it('sends all requests of an API key to the same process, wherever the key is', async (context) => {
  needTool(context, program, '-v')
  const [first, second, port] = [await startNamed('one'), await startNamed('two'), await freePort()]
  const folder = mkdtempSync(join(tmpdir(), 'portolan-haproxy-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'haproxy.cfg')
  const config = read('deploy/haproxy/haproxy.cfg')
    .replace('maxconn 20000', 'maxconn 100')
    .replace('bind :8080', `bind 127.0.0.1:${port}`)
    .replace('portolan-1:4000', `127.0.0.1:${first}`)
    .replace('portolan-2:4000', `127.0.0.1:${second}`)
  writeFileSync(file, config)
  const proxy = spawn(program, ['-db', '-f', file], { stdio: ['ignore', 'pipe', 'ignore'] })
  let log = ''
  proxy.stdout.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
  onTestFinished(async () => {
    proxy.kill('SIGKILL')
    if (proxy.exitCode === null && proxy.signalCode === null) await once(proxy, 'exit')
  })
  const get = async (path: string, headers: Record<string, string> = {}): Promise<string> => {
    const signal = AbortSignal.timeout(10_000)
    return await (await fetch(`http://127.0.0.1:${port}${path}`, { headers, signal })).text()
  }
  await waitFor('haproxy answers', () =>
    get('/health').then(
      (text) => /^(one|two)/.test(text),
      () => false,
    ),
  )
  const chosen = new Set<string>()
  for (let turn = 0; turn < 20; turn++) {
    const key = `plk_${turn}abcdefghijklmnopqrst`
    const answers = [
      await get(`/c/mainnet/v1/${key}`),
      await get(`/c/mainnet/v1/ws/${key}`),
      await get('/c/mainnet/v1', { authorization: `Bearer ${key}` }),
      await get('/v1/c/ListWallets', { 'x-api-key': key }),
    ]
    expect(new Set(answers).size).toBe(1)
    expect(answers[0]).toContain('127.0.0.1')
    chosen.add(answers[0]!)
  }
  expect(chosen.size).toBe(2)
  await waitFor('haproxy logs', () => log.includes(' GET'))
  expect(log).not.toContain('plk_')
})
