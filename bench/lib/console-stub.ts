import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startServer } from '../../src/http/server.ts'
import { consoleRoutes, openConsole } from '../../src/http/web-console/routes.ts'
import { silentLog } from '../../src/lib/log.ts'

/** A service of constant answers: what is measured is the page. */
export type ConsoleStub = {
  url: string
  /** Sends live transfers to the open stream, so many a second. */
  send(count: number, perSecond: number): Promise<void>
  stop(): Promise<void>
}

const wallet_id = '01a1e365-138e-76cb-a2c4-75d15e22dfcc'
const address = `0x${'ab'.repeat(20)}`
const time = (index: number) => new Date(1_790_000_000_000 - index * 12_000).toISOString()

const transferAt = (index: number) => ({
  transfer_id: `transfer-${index}`,
  wallet_id,
  transaction_hash: `0x${index.toString(16).padStart(64, '0')}`,
  asset_type: 'ASSET_TYPE_C',
  from: `0x${'cd'.repeat(20)}`,
  to: address,
  value: `${10n ** 15n * BigInt(index + 1)}`,
  transaction_fee: '21000000000000',
  fee_paid: '0',
  direction: 'TRANSFER_DIRECTION_INCOMING',
  transfer_time: time(index),
  block_number: 20_000_000 - index,
  transfer_state: 'TRANSFER_STATE_SUCCESS',
})

const chain = {
  ...{ chain: 'c', network: 'mainnet', is_default_network: true, kind: 'evm', variant: 'C' },
  ...{ is_tracked: true, block_number: '20000000', block_time: time(0), node_head: '20000000' },
  ...{ lag_blocks: '0', health: 'ok', problem: '', reorganization_count: 0, gap_count: 0 },
  ...{ chain_id: 1, symbol: 'ETH', decimals: 18, explorer_url: '' },
}

/** The answers by operation. Pages of transfers go by key: the token is the index of the next one. */
function answerTo(
  operation: string,
  request: { page_token?: string; page_size?: number },
  transfers: number,
): object {
  const pagination = { next_page_token: '' }
  switch (operation) {
    case 'GetCurrentCredential':
      return {
        credential: { role: 'ROLE_MEMBER', api_key_hint: 'plk_bench…', scopes: ['*'] },
        organization: { organization_id: 'bench', name: 'Bench', domain: 'bench' },
        embedded: false,
      }
    case 'ListChains':
      return { chains: [chain] }
    case 'GetWallet':
      return {
        wallet: {
          wallet_id,
          name: 'Bench',
          addresses: [address],
          address_count: 1,
          create_time: time(0),
        },
      }
    case 'ListTransfers': {
      const start = Number(request.page_token ?? 0)
      const end = Math.min(transfers, start + (request.page_size ?? 100))
      return {
        transfers: Array.from({ length: end - start }, (_, at) => transferAt(start + at)),
        pagination: { next_page_token: end < transfers ? `${end}` : '' },
      }
    }
    default:
      return { wallets: [], webhooks: [], problems: [], points: [], heads: [], pagination }
  }
}

/** Serves the built console and the answers. */
export async function startConsoleStub(options: {
  directory: string
  transfers: number
}): Promise<ConsoleStub> {
  const page = await startServer({
    ...{ host: '127.0.0.1', port: 0, log: silentLog, onFinished: () => {} },
    routes: consoleRoutes(openConsole({ directory: options.directory, basePath: '' })),
  })
  const origin = `http://127.0.0.1:${page.address.port}`
  const streams = new Set<ServerResponse>()
  const server = createServer(async (request, response) => {
    const path = (request.url ?? '/').split('?')[0]!
    if (path === '/v1/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(
        'id: c=0\nevent: ready\ndata: {"type":"ready","chain":"","network":"","data":{}}\n\n',
      )
      streams.add(response)
      response.on('close', () => streams.delete(response))
      return
    }
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const [, operation] = /^\/v1\/\w+\/(\w+)$/.exec(path) ?? []
    if (operation) {
      const body = JSON.parse(`${Buffer.concat(chunks)}` || '{}')
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(answerTo(operation, body, options.transfers)))
      return
    }
    const { accept = '', 'accept-encoding': encoding = '' } = request.headers
    const file = await fetch(origin + path, {
      headers: { accept, 'accept-encoding': `${encoding}` },
      signal: AbortSignal.timeout(60_000),
    })
    const headers = Object.fromEntries(file.headers)
    // `fetch` has decoded it.
    delete headers['content-encoding']
    delete headers['content-length']
    response.writeHead(file.status, headers).end(Buffer.from(await file.arrayBuffer()))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    send: async (count, perSecond) => {
      const step = Math.max(1, Math.round(perSecond / 50))
      for (let sent = 0; sent < count; sent += step) {
        const events = Array.from({ length: Math.min(step, count - sent) }, (_, at) => {
          const sequence = sent + at + 1
          const transfer = { ...transferAt(0), transfer_id: `live-${sequence}` }
          const data = { transaction_hash: transfer.transaction_hash, transfers: [transfer] }
          const event = { type: 'transfer', chain: 'c', network: 'mainnet', sequence, data }
          return `id: c=${sequence}\nevent: transfer\ndata: ${JSON.stringify({ ...event, create_time: time(0) })}\n\n`
        })
        for (const stream of streams) stream.write(events.join(''))
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await page.stop()
    },
  }
}
