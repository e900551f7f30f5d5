// Watches an address and prints every deposit, as a payment company would: register a wallet, register a webhook, verify
// each delivery. Run it beside `npm start`: npx node examples/deposit-detector.ts [c|t|s|p]
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createClient, verifyWebhook } from '@portolan/client'
import { readConnection } from './connection.ts'

const chain = (process.argv[2] ?? 'c') as 'c' | 't' | 's' | 'p'
if (!['c', 't', 's', 'p'].includes(chain)) {
  console.error(`There is no chain "${chain}". Usage: deposit-detector.ts [c|t|s|p]`)
  process.exit(2)
}
const { base_url, member } = readConnection()
const portolan = createClient({ base_url, ...member })[chain]

// An address of a customer. In production it comes from your own wallet; this one has no key.
const account = randomBytes(32).toString('hex')
const address = {
  c: `0x${account.slice(24)}`,
  t: `0:${account}`,
  s: `0x${account}`,
  p: `0x${account}`,
}[chain]
const { wallet_id } = await portolan.RegisterWallet({ name: 'Deposits of a customer', address })

let secret = ''
const seen = new Set<string>()
const deposited = Promise.withResolvers<void>()
const receiver = createServer(async (request, response) => {
  const body = await text(request)
  try {
    const notification = await verifyWebhook({ secret, headers: request.headers, body })
    response.writeHead(204).end()
    // At least once means that a delivery may come again, with the same id.
    if (seen.has(notification.webhook_history_id)) return
    seen.add(notification.webhook_history_id)
    if (!('transfers' in notification.data)) return
    for (const { to, value } of notification.data.transfers)
      console.log(`deposit of ${value} to ${to}`)
    deposited.resolve()
  } catch (error) {
    console.error(`not genuine: ${error}`)
    response.writeHead(401).end()
  }
}).listen(0, '127.0.0.1')
await once(receiver, 'listening')
const { port } = receiver.address() as AddressInfo

const { webhook_id } = await portolan.RegisterWebhook({
  wallet_id,
  webhook_endpoint: `http://127.0.0.1:${port}/deposits`,
  confirmation: 1,
})
secret = (await portolan.GetWebhookSigningSecret({ webhook_id })).signing_secret

// A customer pays. The local chains have a faucet for that.
const paid = await fetch(`${base_url}/dev/v1/faucet`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ chain, address }),
})
console.log(`paid in ${((await paid.json()) as { transaction_hash: string }).transaction_hash}`)

await deposited.promise
await portolan.RemoveWebhook({ webhook_id })
receiver.close()
receiver.closeAllConnections()
