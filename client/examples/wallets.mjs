// Registers a wallet and lists all of them. Node 20+ and Bun:
//   PORTOLAN_URL=http://127.0.0.1:4000 API_KEY=… API_SECRET=… node wallets.mjs
import { createClient, items, PortolanError } from '@portolan/client'

const client = createClient({
  base_url: process.env.PORTOLAN_URL ?? 'http://127.0.0.1:4000',
  api_key: process.env.API_KEY ?? '',
  api_secret: process.env.API_SECRET ?? '',
})

try {
  const { wallet_id } = await client.c.RegisterWallet({ name: 'example', confirmation: 12 })
  console.log(`registered ${wallet_id}`)
  for await (const wallet of items(client.c.ListWallets, {}))
    console.log(wallet.name, wallet.wallet_id)
} catch (error) {
  if (!(error instanceof PortolanError)) throw error
  console.error(error.message)
  process.exitCode = 1
}
