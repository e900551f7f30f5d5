import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import type { ShownProcess } from '../../src/app/cluster/crew.ts'
import { connect } from '../gateway-ws/client.ts'
import { startChain } from '../helpers/anvil.ts'
import { authHeaders, type Pair } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { freshFolder, startService } from './portolan.ts'

// One service of four processes for the whole file: supervisor, background and two that serve requests.
const chain = await startChain(1)
afterAll(() => chain.stop())
const node = await countCalls(chain.nodes[0]!.url)
afterAll(() => node.stop())
const folder = await freshFolder()
const service = await startService(join(folder, 'data'), {
  cwd: folder,
  env: {
    PORTOLAN_SERVER__WORKERS: '2',
    PORTOLAN_LIMITS__PER_SECOND_LIMIT: '-1',
    PORTOLAN_CHAINS__C__NETWORKS__MAINNET__UPSTREAMS__0__URL: node.url,
  },
})
const { base_url, ws_url, admin_url, admin, member, organization_id } = service.connection

// biome-ignore lint/suspicious/noExplicitAny: any answer
type Reply = { status: number; process: string; json: any }

/** Sends on a connection of its own, which any of the processes may get. */
const send = (path: string, body: string, headers: Record<string, string> = {}): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const sent = request(
      `${base_url}${path}`,
      {
        method: 'POST',
        agent: false,
        headers: { 'content-type': 'application/json', ...headers },
        timeout: 20_000,
      },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk
        })
        response.on('error', reject)
        response.on('end', () => {
          // The ids of requests begin with a text that each process has its own of.
          const id = String(response.headers['x-request-id'])
          const process = id.slice(0, id.lastIndexOf('-'))
          resolve({ status: response.statusCode!, process, json: JSON.parse(text) })
        })
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
const rpc = (method: string, params: unknown[] = [], key = member!.api_key) =>
  send(`/c/mainnet/v1/${key}`, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
const call = async (pair: Pair, operation: string, value: object) => {
  const [path, body] = [`/v1/${operation}`, JSON.stringify(value)]
  return (await send(path, body, authHeaders(pair, { path, body }))).json
}
const status = async () => {
  const answer = await fetch(`${admin_url}/status`)
  return (await answer.json()) as Record<string, unknown> & { processes: ShownProcess[] }
}
const times = (count: number) => Array.from({ length: count })
const pidOf = async (name: string) =>
  (await status()).processes.find((one) => one.name === name)!.pid!

describe('a service of several processes', () => {
  it('warns of the development rules once, and not in every process', () => {
    expect(service.output().match(/security\.development_rules is on/g)).toHaveLength(1)
  })

  it('is one service to clients and to the operator', async () => {
    const processes = new Set<string>()
    await waitFor('both have answered', async () => {
      processes.add((await rpc('eth_blockNumber')).process)
      return processes.size === 2
    })
    expect((await status()).processes).toMatchObject([
      { name: 'background', roles: ['tracker', 'courier', 'sender'], state: 'running' },
      { name: 'worker-1', roles: ['api', 'gateway', 'console'], state: 'running', restarts: 0 },
      { name: 'worker-2', roles: ['api', 'gateway', 'console'], state: 'running', restarts: 0 },
    ])
    const text = await (await fetch(`${admin_url}/metrics`)).text()
    const calls = /portolan_gateway_calls_total\{.*method="eth_blockNumber".*\} (\d+)/.exec(text)
    expect(Number(calls?.[1])).toBeGreaterThanOrEqual(2)
    expect(text).toMatch(/process_resident_memory_bytes\{process="worker-2"\}/)
    expect(text).toMatch(/portolan_tracker_block\{chain="c",network="mainnet"\}/)
    // An operation that needs the tracker of another process.
    const { wallet_id } = await call(member!, 'c/RegisterWallet', { name: 'w' })
    expect(wallet_id).toEqual(expect.any(String))
  })

  it('probes a node as often as a single process does', async () => {
    const { nodes } = ((await status()).chains as Record<string, { nodes: object }>).c!
    expect(nodes).toMatchObject({ mainnet: { state: 'active', upstreams: [{ state: 'healthy' }] } })
    // The first probes of a process are its own.
    await waitFor('all follow one process', async () => {
      const before = node.probes()
      await delay(2_000)
      return node.probes() - before <= 3
    })
    const before = node.probes()
    await delay(3_000)
    // Every second, or somewhat more often: three processes would need at least seven.
    expect(node.probes() - before).toBeGreaterThanOrEqual(1)
    expect(node.probes() - before).toBeLessThanOrEqual(5)
  })

  it('finds a filter from every process, whichever made it', async () => {
    for (let turn = 0; turn < 4; turn++) {
      const made = await rpc('eth_newBlockFilter')
      const processes = new Set<string>()
      await waitFor('both were asked', async () => {
        const { json, process } = await rpc('eth_getFilterChanges', [made.json.result])
        expect(json).toEqual({ jsonrpc: '2.0', id: 1, result: expect.any(Array) })
        processes.add(process)
        return processes.size === 2
      })
      const stranger = await rpc('eth_getFilterChanges', [made.json.result], admin!.api_key)
      expect(stranger.json.error.data.reason).toBe('FILTER_NOT_FOUND')
      expect((await rpc('eth_uninstallFilter', [made.json.result])).json.result).toBe(true)
      const { error } = (await rpc('eth_getFilterChanges', [made.json.result])).json
      expect(error.data.reason).toBe('FILTER_NOT_FOUND')
    }
  })

  it('admits exactly what a limit allows', async () => {
    const domain = `limited-${Date.now()}`
    const made = await call(admin!, 'admin/CreateOrganization', { name: 'Limited', domain })
    const of = { organization_id: made.organization.organization_id }
    const key = (await call(admin!, 'admin/CreateCredential', { ...of, role: 'ROLE_MEMBER' }))
      .credential.api_key
    const limits = { per_second_limit: -1, per_hour_limit: -1, per_day_limit: -1 }
    const limit = 100
    await call(admin!, 'admin/SetRateLimit', {
      ...of,
      chain: 'c',
      ...limits,
      per_month_limit: limit,
    })
    const replies = await Promise.all(times(300).map(() => rpc('eth_chainId', [], key)))
    let admitted = replies.filter((one) => one.status === 200).length
    expect(new Set(replies.map((one) => one.process)).size).toBe(2)
    expect(admitted).toBeLessThanOrEqual(limit)
    // What one process was granted and did not use is given back within milliseconds.
    await waitFor('all are used', async () => {
      if ((await rpc('eth_chainId', [], key)).status === 200) admitted++
      return admitted >= limit
    })
    const more = await Promise.all(times(20).map(() => rpc('eth_chainId', [], key)))
    expect([admitted, ...new Set(more.map((one) => one.status))]).toEqual([limit, 429])
  })

  it('refuses a deleted key in every process after a second', async () => {
    const of = { organization_id }
    const { credential } = await call(admin!, 'admin/CreateCredential', {
      ...of,
      role: 'ROLE_MEMBER',
    })
    const ask = () => Promise.all(times(16).map(() => rpc('eth_chainId', [], credential.api_key)))
    const used = await ask()
    expect(new Set(used.map((one) => `${one.status}`))).toEqual(new Set(['200']))
    await call(admin!, 'admin/DeleteCredential', {
      ...{ api_key: credential.api_key, api_secret: credential.api_secret },
    })
    await delay(1_000)
    const refused = await ask()
    expect(new Set(refused.map((one) => one.process)).size).toBe(2)
    expect(new Set(refused.map((one) => one.status))).toEqual(new Set([401]))
  })

  it('lists the WebSockets of all processes, and the latency of methods by key', async () => {
    const url = `${ws_url}/c/mainnet/v1/ws/${member!.api_key}`
    const clients = await Promise.all(times(12).map(() => connect(url)))
    await clients[0]!.call('eth_subscribe', ['newHeads'])
    // The processes that answer differ, and each has connections that the other one reports.
    const list = async () =>
      (await call(member!, 'admin/ListWebSocketClients', {})).websocket_clients
    for (let turn = 0; turn < 3; turn++)
      await waitFor('all are listed', async () => (await list()).length === 12)
    const rows = (await list()) as { client: string; subscriptions: object[] }[]
    expect(rows.flatMap(({ subscriptions }) => subscriptions)).toEqual([
      { name: 'newHeads', subscription_count: 1 },
    ])
    expect(rows[0]).toMatchObject({
      ...{ chain: 'c', network: 'mainnet', organization_id, client: '127.0.0.1' },
      buffered_bytes: 0,
    })
    // The figures of the gateway are of all processes too, whichever answers.
    const shown = new Set<string>()
    for (let turn = 0; turn < 4; turn++) {
      const { nodes, gateways } = await call(admin!, 'admin/ListNodes', {})
      const gateway = gateways.find((one: { chain: string }) => one.chain === 'c')
      shown.add(`${nodes[0].state} ${gateway.websocket_count} ${gateway.subscription_count}`)
    }
    expect([...shown]).toEqual(['healthy 12 1'])
    for (const { ws } of clients) ws.close()
    await waitFor('they are gone', async () => (await list()).length === 0)
    await waitFor('the calls are counted', async () => {
      const usage = { organization_id, per_key: true }
      const { methods } = await call(member!, 'admin/ListMethodUsage', usage)
      const found = methods.find(({ method }: { method: string }) => method === 'eth_blockNumber')
      return found?.p50_ms > 0 && found.api_key_hint.startsWith(member!.api_key.slice(0, 8))
    })
  })

  it('replaces a process by plan without a failed request, and asks its clients to connect again', async () => {
    const url = `${ws_url}/c/mainnet/v1/ws/${member!.api_key}`
    const clients = await Promise.all(times(12).map(() => connect(url)))
    const codes: number[] = []
    for (const { closed } of clients) void closed.then(({ code }) => codes.push(code))
    const before = await pidOf('worker-1')
    let isOver = false
    const failures: string[] = []
    const load = async () => {
      while (!isOver) {
        const { status: code } = await rpc('eth_chainId').catch((error) => ({ status: `${error}` }))
        if (code !== 200) failures.push(`${code}`)
        await delay(5)
      }
    }
    const loads = times(3).map(load)
    process.kill(before, 'SIGTERM')
    await waitFor('another one serves', async () => (await pidOf('worker-1')) !== before)
    await waitFor('its clients were closed', () => codes.length > 0)
    await waitFor('it has ended', () => !isRunning(before))
    isOver = true
    await Promise.all(loads)
    expect(failures).toEqual([])
    expect(new Set(codes)).toEqual(new Set([1012]))
    expect(codes.length).toBeLessThan(clients.length)
  })

  it('replaces a process that was killed', async () => {
    const before = await pidOf('worker-2')
    process.kill(before, 'SIGKILL')
    await waitFor('another one serves', async () => {
      const { processes } = await status()
      const { pid, state, restarts } = processes.find((one) => one.name === 'worker-2')!
      return state === 'running' && pid !== before && restarts === 1
    })
    const processes = new Set<string>()
    await waitFor('both answer', async () => {
      processes.add((await rpc('eth_chainId')).process)
      return processes.size === 2
    })
  })

  it('stops as a whole', async () => {
    const pids = (await status()).processes.map(({ pid }) => pid!)
    expect((await service.stop('SIGTERM')).code).toBe(0)
    expect(pids.filter(isRunning)).toEqual([])
    expect(service.output()).toContain('"process":"worker-1"')
  })
})

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Passes calls on to a node, and counts those for its head. */
async function countCalls(to: string) {
  let probes = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    probes += body.toString('latin1').split('"latest",false').length - 1
    const answer = await fetch(to, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    }).catch(() => undefined)
    response.writeHead(answer?.status ?? 502, { 'content-type': 'application/json' })
    response.end(answer && Buffer.from(await answer.arrayBuffer()))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    probes: () => probes,
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
