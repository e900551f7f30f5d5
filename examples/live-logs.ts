// Prints the transfers of an ERC-20 as they happen, over the gateway's WebSocket, and retracts what a reorganization
// drops. Run it beside `npm start`: npx node examples/live-logs.ts [how many]
import { gatewayWsUrl } from '@portolan/client'
import { createPublicClient, parseAbiItem, webSocket } from 'viem'
import { readConnection } from './connection.ts'

const count = Number(process.argv[2] ?? 3)
if (!Number.isInteger(count) || count < 1) {
  console.error('Usage: live-logs.ts [how many], a whole number of at least 1')
  process.exit(2)
}
const { ws_url, member, chains } = readConnection()
const url = gatewayWsUrl({
  base_url: ws_url,
  chain: 'c',
  network: chains.c.network,
  api_key: member.api_key,
})
const client = createPublicClient({ transport: webSocket(url) })

let seen = 0
const unwatch = client.watchEvent({
  address: chains.c.contracts.erc20,
  event: parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 value)'),
  onLogs: (logs) => {
    for (const { args, blockNumber, removed } of logs) {
      console.log(
        `${removed ? 'taken back' : 'transfer'} in block ${blockNumber}: ${args.value} to ${args.to}`,
      )
      seen++
    }
    if (seen >= count) {
      unwatch()
      process.exit(0)
    }
  },
  onError: (error) => {
    console.error(error.message)
    process.exit(1)
  },
})
