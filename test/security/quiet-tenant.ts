import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Pool } from 'undici'
import { authHeaders, type Pair } from '../helpers/signer.ts'
import { stolenTicks } from '../helpers/stolen-cpu.ts'
import type { Fund } from './abuses.ts'

/** Milliseconds of each call and transfer of one round. */
export type Measured = {
  operations: number[]
  gateway: number[]
  transfers: number[]
  failed: number
  /** Calls and transfers beside which the hypervisor withheld the CPU. They are in no figure. */
  disturbed: number
}

const json = { 'content-type': 'application/json' }
const callEveryMs = 5
const transferEveryMs = 1_000
/** What came in while the CPU was withheld is worked off for so long afterwards. */
const recoveryMs = 50
/** How often to look whether it was. Looking at each call took enough of the core to change the figures. */
const lookMs = 20

/** Knows which calls were open while the hypervisor withheld the CPU. */
const createStealWatch = () => {
  let ticks = stolenTicks()
  let lookedAt = performance.now()
  let roseAt = Number.NEGATIVE_INFINITY
  const look = () => {
    const now = stolenTicks()
    lookedAt = performance.now()
    if (now > ticks) roseAt = lookedAt
    ticks = now
  }
  return {
    /** To be called for each call. */
    lookSometimes() {
      if (performance.now() - lookedAt >= lookMs) look()
    },
    /** Whether the CPU was withheld since a call began, or shortly before. */
    isDisturbed(begin: number): boolean {
      if (performance.now() - begin > lookMs / 4) look()
      return roseAt >= begin - recoveryMs
    },
  }
}

const post = async (pool: Pool, request: { path: string; body: string; headers?: object }) => {
  const { path, body, headers = {} } = request
  const answer = await pool.request({
    path,
    method: 'POST',
    body,
    headers: { ...json, ...headers },
  })
  return { status: answer.statusCode, text: await answer.body.text() }
}

const signed = (pair: Pair, operation: string, request: object) => {
  const path = `/v1/${operation}`
  const body = JSON.stringify(request)
  return { path, body, headers: authHeaders(pair, { path, body }) }
}

/** A tenant that stays below its limits, with a wallet and a webhook. */
export async function createQuietTenant(base_url: string, pair: Pair, fund: Fund) {
  // A pool for each kind of call: operations must not wait in this process for calls that wait for the node.
  const pool = new Pool(base_url, { connections: 16, pipelining: 1 })
  const gateway = new Pool(base_url, { connections: 32, pipelining: 1 })
  const arrivals = new Map<string, number>()
  const sink = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString()
    for (const [hash] of body.matchAll(/0x[0-9a-f]{64}/g))
      if (!arrivals.has(hash)) arrivals.set(hash, performance.now())
    response.writeHead(204).end()
  }).listen(0, '127.0.0.1')
  await once(sink, 'listening')
  const address = `0x${randomBytes(20).toString('hex')}`
  const create = async (operation: string, request: object) => {
    const { status, text } = await post(pool, signed(pair, operation, request))
    if (status !== 200) throw new Error(`${operation}: ${text}`)
    return JSON.parse(text)
  }
  const { wallet_id } = await create('c/RegisterWallet', { name: 'quiet', address })
  await create('c/RegisterWebhook', {
    ...{ wallet_id, confirmation: 0 },
    webhook_endpoint: `http://127.0.0.1:${(sink.address() as AddressInfo).port}/`,
  })

  /** How long a transfer takes from its block to the webhook; undefined if it does not arrive. */
  const transfer = async (): Promise<number | undefined> => {
    const transaction_hash = await fund(address)
    const begin = performance.now()
    const end = begin + 60_000
    while (!arrivals.has(transaction_hash) && performance.now() < end) await delay(5)
    const arrival = arrivals.get(transaction_hash)
    return arrival && Math.max(0, arrival - begin)
  }

  const operation = () => signed(pair, 'c/ListWallets', {})
  const gatewayCall = () => ({
    path: `/c/mainnet/v1/${pair.api_key}`,
    body: '{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x0000000000000000000000000000000000000001","latest"]}',
  })

  /** Calls at a fixed rate however slow the answers are, operations and gateway calls in turn, and transfers. */
  const measure = async (seconds: number): Promise<Measured> => {
    const measured: Measured = {
      ...{ operations: [], gateway: [], transfers: [] },
      ...{ failed: 0, disturbed: 0 },
    }
    const watch = createStealWatch()
    const add = (kind: 'operations' | 'gateway' | 'transfers', begin: number, ms: number) => {
      if (watch.isDisturbed(begin)) measured.disturbed++
      else measured[kind].push(ms)
    }
    const fail = () => {
      measured.failed++
    }
    const start = performance.now()
    const open: Promise<void>[] = []
    let nextTransfer = start
    for (let turn = 0; performance.now() < start + seconds * 1_000; turn++) {
      watch.lookSometimes()
      const begin = performance.now()
      const isOperation = turn % 2 === 0
      const request = isOperation ? operation() : gatewayCall()
      const call = post(isOperation ? pool : gateway, request).then(({ status, text }) => {
        if (status !== 200 || text.includes('"error"')) fail()
        add(isOperation ? 'operations' : 'gateway', begin, performance.now() - begin)
      })
      open.push(call.catch(fail))
      if (begin >= nextTransfer) {
        nextTransfer += transferEveryMs
        const arrived = transfer().then((ms) =>
          ms === undefined ? fail() : add('transfers', begin, ms),
        )
        open.push(arrived.catch(fail))
      }
      const wait = start + (turn + 1) * callEveryMs - performance.now()
      await delay(Math.max(0, wait))
    }
    await Promise.all(open)
    return measured
  }
  /** Many operations at once: connections of the database that are used for the first time take up to 40 ms for a statement. */
  const warm = async (): Promise<void> => {
    for (let turn = 0; turn < 50; turn++) {
      const calls = Array.from({ length: 32 }, () => post(gateway, operation()))
      for (const { status, text } of await Promise.all(calls))
        if (status !== 200) throw new Error(`ListWallets: ${text}`)
      await delay(50)
    }
  }
  const stop = async () => {
    sink.close().closeAllConnections()
    await Promise.all([pool.destroy(), gateway.destroy()])
  }
  return { warm, measure, stop }
}
