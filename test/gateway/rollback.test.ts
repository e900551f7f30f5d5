import { expect, it } from 'vitest'
import { waitFor } from '../helpers/wait-for.ts'
import { startTestGateway } from './gateway.ts'
import { startStubNode, stubHash } from './stub-node.ts'

it('what a rollback of the only node took away is not answered from memory', async () => {
  const node = await startStubNode()
  const gateway = await startTestGateway([node.url])
  const transaction = `0x${'7'.repeat(64)}`
  node.answer = ({ method }) => {
    if (method !== 'eth_getTransactionReceipt') return undefined
    const receipt = `{"blockHash":"${stubHash(1000)}","blockNumber":"0x3e8","transactionHash":"${transaction}","contractAddress":null,"status":"0x1"}`
    return { result: node.head >= 1000 ? receipt : 'null' }
  }
  const ask = () =>
    gateway.post(
      `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["${transaction}"]}`,
    )
  await waitFor('it is kept', async () => (await ask()).headers['x-portolan-cache'] === 'HIT')
  node.head = 995
  await waitFor('it is gone', async () => (await ask()).json.result === null, {
    timeoutMs: 30_000,
  })
  expect((await gateway.rpc('eth_blockNumber')).result).toBe('0x3e3')
})
