import { randomBytes, randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from 'undici'
import { WebSocket } from 'ws'
import { authHeaders, type Pair } from '../helpers/signer.ts'

/** What an abusing tenant has: its credential, and a connection pool to the service. */
export type Abuser = { pool: Pool; base_url: string; pair: Pair; signal: AbortSignal }

/** Sends what it can until the signal aborts. */
export type Abuse = (abuser: Abuser) => Promise<void>

const json = { 'content-type': 'application/json' }
const address = () => `0x${randomBytes(20).toString('hex')}`

const post = async (
  { pool }: Abuser,
  path: string,
  body: string,
  headers: object = {},
): Promise<string> => {
  const answer = await pool.request({
    path,
    method: 'POST',
    headers: { ...json, ...headers },
    body,
  })
  return await answer.body.text()
}

const operate = async (abuser: Abuser, operation: string, request: object): Promise<string> => {
  const path = `/v1/${operation}`
  const body = JSON.stringify(request)
  return await post(abuser, path, body, authHeaders(abuser.pair, { path, body }))
}

const rpc = (abuser: Abuser, body: string) =>
  post(abuser, `/c/mainnet/v1/${abuser.pair.api_key}`, body)

const rpcCall = (method: string, params: unknown[] = []) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })

/** Starts work at a fixed rate, however slow its answers are, with a bound on what is open. */
const pace = async (
  { signal }: Abuser,
  perSecond: number,
  act: () => Promise<unknown>,
): Promise<void> => {
  const begin = performance.now()
  let open = 0
  for (let count = 0; !signal.aborted; count++) {
    const wait = begin + (count * 1_000) / perSecond - performance.now()
    if (wait > 1) await delay(wait)
    if (open >= 200) continue
    open++
    act()
      .catch(() => {})
      .finally(() => open--)
  }
}

const openSockets = async (
  { base_url, signal }: Abuser,
  count: number,
  first: string,
): Promise<void> => {
  const { hostname, port } = new URL(base_url)
  const sockets: Socket[] = []
  for (let number = 0; number < count && !signal.aborted; number++) {
    const socket = connect(Number(port), hostname).on('error', () => {})
    socket.write(first)
    sockets.push(socket)
    if (number % 100 === 99) await delay(10)
  }
  while (!signal.aborted) await delay(50)
  for (const socket of sockets) socket.destroy()
}

/** The default limit of calls per second and chain. */
const limit = 100

/** Ten ways in which one tenant may try to slow the others down. */
export const abuses: Readonly<Record<string, Abuse>> = {
  'gateway calls at ten times the limit': (abuser) =>
    pace(abuser, limit * 10, () => rpc(abuser, rpcCall('eth_blockNumber'))),
  'gateway bodies of 4 MiB': (abuser) => {
    const body = rpcCall('eth_call', [{ data: `0x${'00'.repeat(2 ** 21)}` }, 'latest'])
    return pace(abuser, 10, () => rpc(abuser, body))
  },
  'deeply nested bodies': (abuser) => {
    const depth = 500_000
    const nested = `${'['.repeat(depth)}${']'.repeat(depth)}`
    const body = `{"jsonrpc":"2.0","id":1,"method":"eth_call","params":${nested}}`
    return pace(abuser, 10, () => rpc(abuser, body))
  },
  'batches of 100 calls': (abuser) => {
    const body = `[${Array.from({ length: 100 }, () => rpcCall('eth_getBlockByNumber', ['latest', true]))}]`
    return pace(abuser, 10, () => rpc(abuser, body))
  },
  'logs of all blocks': (abuser) =>
    pace(abuser, limit, () =>
      rpc(abuser, rpcCall('eth_getLogs', [{ fromBlock: 'earliest', toBlock: 'latest' }])),
    ),
  'subscriptions with thousands of addresses': async (abuser) => {
    const { base_url, pair, signal } = abuser
    const socket = new WebSocket(
      `${base_url.replace('http', 'ws')}/c/mainnet/v1/ws/${pair.api_key}`,
    )
    socket.on('error', () => {})
    await new Promise((resolve) => socket.once('open', resolve))
    while (!signal.aborted) {
      const filter = { address: Array.from({ length: 1_000 }, address) }
      if (socket.readyState === WebSocket.OPEN)
        socket.send(rpcCall('eth_subscribe', ['logs', filter]))
      await delay(1_000 / limit)
    }
    socket.terminate()
  },
  'guessed credentials': (abuser) =>
    pace(abuser, 900, () => {
      const pair = { api_key: randomBytes(24).toString('base64url'), api_secret: 'x' }
      return operate({ ...abuser, pair }, 'c/ListWallets', {})
    }),
  'idle connections': (abuser) =>
    openSockets(abuser, 5_000, 'POST /v1/c/ListWallets HTTP/1.1\r\nhost: x\r\n'),
  'addresses in bulk': async (abuser) => {
    const { wallet_id } = JSON.parse(await operate(abuser, 'c/RegisterWallet', { name: 'bulk' }))
    await pace(abuser, 20, () =>
      operate(abuser, 'c/BatchRegisterAddresses', {
        wallet_id,
        addresses: Array.from({ length: 500 }, address),
      }),
    )
  },
  'transactions of one address': async (abuser) => {
    const from_address = address()
    await operate(abuser, 'c/RegisterWallet', { name: 'sender', address: from_address })
    await pace(abuser, limit, () =>
      operate(abuser, 'c/CreateTransaction', {
        transaction_id: randomUUID(),
        from_address,
        to_address: address(),
        value: '1',
        gas_limit: '21000',
      }),
    )
  },
}
