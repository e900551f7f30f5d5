import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from 'undici'
import { WebSocket } from 'ws'
import { authHeaders, type Pair } from '../helpers/signer.ts'

/** Sends coin from the faucet of the chain; the hash of the transaction. */
export type Fund = (receiver: string, amount?: bigint) => Promise<string>

/** What an abusing tenant has: its credential, and a connection pool to the service. */
export type Abuser = {
  pool: Pool
  fund: Fund
  base_url: string
  /** The loopback address that its connections come from. */
  localAddress: string
  pair: Pair
  /** Counts an outcome: `done`, or why the service refused. */
  note(outcome: string, count?: number): void
}

/** Sends what it can until the signal aborts. */
type Work = (signal: AbortSignal) => Promise<void>

/** One way in which a tenant may try to slow the others down. */
export type Abuse = {
  /** Outcomes that have to occur: without them the abuse does not test what its name says. */
  must: readonly string[]
  /** Outcomes that may occur; any other one is an error. */
  may?: readonly string[]
  /** How long it takes until the work has its full effect. */
  leadMs?: number
  /** The limits that the abuser has, instead of the defaults. */
  perSecond?: number
  /** Creates what the abuse needs; the work runs once per round. */
  prepare(abuser: Abuser): Promise<Work> | Work
}

/** Webhooks that one organization may have in this program. */
export const webhookQuota = 4_000

/** The default limit of calls per second and chain. */
const limit = 100

const json = { 'content-type': 'application/json' }
const address = () => `0x${randomBytes(20).toString('hex')}`

/** Sends coin through the scripted node, which answers when the block is made, or the faucet of a local chain. */
export const createFund =
  (url: string): Fund =>
  async (receiver, amount) => {
    for (let tries = 1; ; tries++) {
      // Another amount each time: with the same nonce two equal transactions would be one.
      const sent = amount ?? BigInt(randomInt(1, 2 ** 40))
      const body = JSON.stringify({ chain: 'c', address: receiver, amount: `${sent}` })
      const answer = await fetch(url, { method: 'POST', headers: json, body })
      const text = await answer.text()
      if (answer.status === 200) return JSON.parse(text).transaction_hash
      // Two callers at once may have got the same nonce from the node.
      if (answer.status !== 503 || tries === 10) throw new Error(`the faucet refused: ${text}`)
      await delay(100)
    }
  }

const post = async ({ pool }: Abuser, path: string, body: string, headers: object = {}) => {
  const answer = await pool.request({
    ...{ path, method: 'POST', body },
    headers: { ...json, ...headers },
  })
  return { status: answer.statusCode, text: await answer.body.text() }
}

// biome-ignore lint/suspicious/noExplicitAny: members of any answer are read
type Json = any

const operate = async (abuser: Abuser, operation: string, request: object): Promise<Json> => {
  const path = `/v1/${operation}`
  const body = JSON.stringify(request)
  const { status, text } = await post(
    ...([abuser, path, body, authHeaders(abuser.pair, { path, body })] as const),
  )
  const answer: Json = JSON.parse(text)
  abuser.note(status === 200 ? 'done' : `${answer.reason}`)
  return answer
}

/** For the preparation of an abuse, which must succeed. */
const created = async (abuser: Abuser, operation: string, request: object): Promise<Json> => {
  const answer = await operate({ ...abuser, note() {} }, operation, request)
  if (answer.reason) throw new Error(`${operation}: ${JSON.stringify(answer)}`)
  return answer
}

const outcomeOf = ({ error }: Json): string =>
  error === undefined ? 'done' : `${error.data?.reason ?? error.code}`

const rpc = async (abuser: Abuser, body: string): Promise<void> => {
  const { text } = await post(abuser, `/c/mainnet/v1/${abuser.pair.api_key}`, body)
  for (const answer of [JSON.parse(text)].flat()) abuser.note(outcomeOf(answer))
}

const rpcCall = (method: string, params: unknown[] = []) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })

/** Starts work at a fixed rate, however slow its answers are, with a bound on what is open. */
const pace = async (
  abuser: Abuser,
  signal: AbortSignal,
  perSecond: number,
  act: () => Promise<unknown>,
): Promise<void> => {
  const begin = performance.now()
  const open = new Set<Promise<unknown>>()
  for (let count = 0; !signal.aborted; count++) {
    const wait = begin + (count * 1_000) / perSecond - performance.now()
    if (wait > 1) await delay(wait)
    if (open.size >= 200) continue
    const work = act()
      .catch(({ code, message }) => abuser.note(`failed: ${code ?? message}`))
      .finally(() => open.delete(work))
    open.add(work)
  }
  await Promise.all(open)
}

const gatewayAbuse = (
  perSecond: number,
  body: string,
  outcomes: Pick<Abuse, 'must' | 'may'>,
): Abuse => ({
  ...outcomes,
  prepare: (abuser) => (signal) => pace(abuser, signal, perSecond, () => rpc(abuser, body)),
})

const openSockets = (abuser: Abuser, count: number, first: string): Work => {
  const { hostname, port } = new URL(abuser.base_url)
  const { localAddress } = abuser
  return async (signal) => {
    const sockets: { socket: Socket; outcome: string }[] = []
    const open = async () => {
      const socket = connect({ port: Number(port), host: hostname, localAddress })
      const one = { socket, outcome: 'open' }
      sockets.push(one)
      socket.on('data', (data) => {
        one.outcome = `${data}`.slice(9, 12)
      })
      socket.on('close', () => {
        if (one.outcome === 'open') one.outcome = 'closed'
      })
      try {
        await once(socket, 'connect')
        socket.on('error', () => {}).write(first)
      } catch (error) {
        one.outcome = `failed: ${(error as NodeJS.ErrnoException).code}`
      }
    }
    // As many at once as fit into the queue of the server. All are opened, however long that takes.
    for (let number = 0; number < count; number += 100)
      await Promise.all(Array.from({ length: 100 }, open))
    while (!signal.aborted) await delay(50)
    for (const { socket, outcome } of sockets) {
      abuser.note(outcome)
      socket.destroy()
    }
  }
}

const subscribe = async (abuser: Abuser, signal: AbortSignal): Promise<void> => {
  const { base_url, pair, localAddress } = abuser
  const url = `${base_url.replace('http', 'ws')}/c/mainnet/v1/ws/${pair.api_key}`
  const socket = new WebSocket(url, { localAddress })
  await once(socket, 'open')
  socket.on('message', (data) => {
    const message: Json = JSON.parse(`${data}`)
    if ('id' in message) abuser.note(outcomeOf(message))
  })
  while (!signal.aborted) {
    const filter = { address: Array.from({ length: 1_000 }, address) }
    if (socket.readyState === WebSocket.OPEN)
      socket.send(rpcCall('eth_subscribe', ['logs', filter]))
    else abuser.note('closed')
    await delay(1_000 / limit)
  }
  socket.terminate()
}

// A transfer is confirmed after ten blocks, one in a second.
const confirmationMs = 15_000
// For the deliveries of one round.
const mostWaitMs = 900_000

/** Registers webhooks up to the quota, all to one endpoint of its own, and then receives transfers. */
const fanOut = async (abuser: Abuser): Promise<Work> => {
  let delivered = 0
  let latest = 0
  const sink = createServer((request, response) => {
    request.resume().on('end', () => {
      delivered++
      latest = performance.now()
      abuser.note('delivered')
      response.writeHead(204).end()
    })
  }).listen(0, '127.0.0.1')
  await once(sink, 'listening')
  const webhook_endpoint = `http://127.0.0.1:${(sink.address() as AddressInfo).port}/`
  const receiver = address()
  const wallet = await created(abuser, 'c/RegisterWallet', { name: 'w', address: receiver })
  const request = { wallet_id: wallet.wallet_id, webhook_endpoint, confirmation: 0 }
  const register = async (count: number) => {
    for (let number = 0; number < count; number++)
      await created(abuser, 'c/RegisterWebhook', request)
  }
  await Promise.all(Array.from({ length: 16 }, () => register(webhookQuota / 16)))
  let funded = 0
  return async (signal) => {
    await operate(abuser, 'c/RegisterWebhook', request)
    // One each five seconds is more than the service delivers.
    await pace(abuser, signal, 0.2, async () => {
      await abuser.fund(receiver)
      funded++
    })
    // The next measurement alone must not meet what is still to be delivered: each transfer once, and again where it was
    // pending before.
    const isDelivered = () =>
      delivered >= funded * webhookQuota && performance.now() > latest + confirmationMs
    const end = performance.now() + mostWaitMs
    while (!isDelivered() && performance.now() < end) await delay(100)
    if (!isDelivered()) abuser.note('not delivered')
  }
}

/** Of refused bodies that are still being sent after five seconds. */
const cutOff = ['failed: ECONNRESET', 'failed: EPIPE', 'failed: UND_ERR_SOCKET']

const nested = `${'['.repeat(500_000)}${']'.repeat(500_000)}`

/** Twelve ways in which one tenant may try to slow the others down. */
export const abuses: Readonly<Record<string, Abuse>> = {
  'gateway calls at ten times the limit': gatewayAbuse(limit * 10, rpcCall('eth_blockNumber'), {
    must: ['done', 'RATE_LIMITED'],
  }),
  'gateway bodies of 4 MiB': gatewayAbuse(
    10,
    rpcCall('eth_call', [{ data: `0x${'00'.repeat(2 ** 21)}` }, 'latest']),
    // Which of the admitted ones the node takes depends on the node.
    {
      must: ['RATE_LIMITED'],
      may: ['done', '-32000', 'UPSTREAM_UNAVAILABLE', 'TOO_MUCH_IN_FLIGHT', ...cutOff],
    },
  ),
  'deeply nested bodies': gatewayAbuse(
    10,
    `{"jsonrpc":"2.0","id":1,"method":"eth_call","params":${nested}}`,
    { must: ['INVALID_JSON'], may: ['RATE_LIMITED', ...cutOff] },
  ),
  'batches of 100 calls': gatewayAbuse(
    10,
    `[${Array.from({ length: 100 }, () => rpcCall('eth_getBlockByNumber', ['latest', true]))}]`,
    { must: ['done', 'RATE_LIMITED'] },
  ),
  'logs of all blocks': gatewayAbuse(
    limit,
    rpcCall('eth_getLogs', [{ fromBlock: 'earliest', toBlock: 'latest' }]),
    { must: ['done'], may: ['RATE_LIMITED'] },
  ),
  'subscriptions with thousands of addresses': {
    must: ['done', 'TOO_MANY_OPEN'],
    may: ['RATE_LIMITED'],
    prepare: (abuser) => (signal) => subscribe(abuser, signal),
  },
  'guessed credentials': {
    must: ['UNAUTHENTICATED', 'TOO_MANY_FAILURES'],
    prepare: (abuser) => (signal) =>
      pace(abuser, signal, 900, () => {
        const pair = { api_key: randomBytes(24).toString('base64url'), api_secret: 'x' }
        return operate({ ...abuser, pair }, 'c/ListWallets', {})
      }),
  },
  'idle connections': {
    must: ['open', '429'],
    // Heads that take too long, and connections that end before their 429 is read.
    may: ['408', 'closed'],
    prepare: (abuser) =>
      openSockets(abuser, 5_000, 'POST /v1/c/ListWallets HTTP/1.1\r\nhost: x\r\n'),
  },
  'addresses in bulk': {
    must: ['done'],
    may: ['RATE_LIMITED'],
    prepare: async (abuser) => {
      const { wallet_id } = await created(abuser, 'c/RegisterWallet', { name: 'bulk' })
      return (signal) =>
        pace(abuser, signal, 20, () => {
          const addresses = Array.from({ length: 500 }, address)
          return operate(abuser, 'c/BatchRegisterAddresses', { wallet_id, addresses })
        })
    },
  },
  'changes of the confirmation': {
    must: ['done'],
    may: ['RATE_LIMITED'],
    prepare: async (abuser) => {
      const { wallet_id } = await created(abuser, 'c/RegisterWallet', { name: 'deep' })
      let confirmation = 1
      // Each takes the cursor of the network, which blocks take too.
      return (signal) =>
        pace(abuser, signal, limit, () => {
          confirmation = (confirmation % 50) + 1
          return operate(abuser, 'c/UpdateConfirmation', { wallet_id, confirmation })
        })
    },
  },
  'transactions of one address': {
    must: ['done'],
    may: ['RATE_LIMITED', 'TOO_MANY_OPEN_TRANSACTIONS'],
    prepare: async (abuser) => {
      const from = address()
      const { wallet_id } = await created(abuser, 'c/RegisterWallet', {
        ...{ name: 'sender', address: from },
      })
      await abuser.fund(from, 10n ** 21n)
      const request = () => ({ transaction_id: randomUUID(), wallet_id, from, to: address() })
      // The faucet's transaction may still wait for its block.
      for (let tries = 0; ; tries++) {
        const answer = await operate({ ...abuser, note() {} }, 'c/CreateTransaction', {
          ...{ ...request(), value: '1' },
        })
        if (!answer.reason) break
        if (tries > 100) throw new Error(`CreateTransaction: ${JSON.stringify(answer)}`)
        await delay(200)
      }
      return (signal) =>
        pace(abuser, signal, limit, () =>
          operate(abuser, 'c/CreateTransaction', { ...request(), value: '1' }),
        )
    },
  },
  'transfers to thousands of webhooks': {
    must: ['delivered', 'QUOTA_EXCEEDED'],
    perSecond: 2_000,
    // Pages of notifications are written first, and delivered once a transfer has all of them.
    leadMs: 12_000,
    prepare: fanOut,
  },
}
