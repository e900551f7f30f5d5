import { expect, it } from 'vitest'
import { waitFor } from '../helpers/wait-for.ts'
import { startTestGateway } from './gateway.ts'
import { startStubNode, stubHash } from './stub-node.ts'

const transaction = `0x${'7'.repeat(64)}`

it('answers from cache and from the node belong to one branch right after a reorganization', async () => {
  const node = await startStubNode()
  const hashAt1000 = () => stubHash(1000, node.fork.above < 1000 ? node.fork.name : 'a')
  const fields = () =>
    `"blockHash":"${hashAt1000()}","blockNumber":"0x3e8","transactionHash":"${transaction}"`
  node.answer = ({ method }) => {
    if (method === 'eth_getTransactionReceipt')
      return { result: `{${fields()},"contractAddress":null,"status":"0x1"}` }
    if (method === 'eth_getLogs')
      return {
        result: `[{${fields()},"address":"0x${'1'.repeat(40)}","topics":[],"data":"0x","logIndex":"0x0","transactionIndex":"0x0","removed":false}]`,
      }
    return undefined
  }
  const gateway = await startTestGateway([node.url])
  const range = { fromBlock: '0x3e8', toBlock: '0x3e8' }
  const reads: Record<string, () => Promise<string>> = {
    block: async () => (await gateway.rpc('eth_getBlockByNumber', ['0x3e8', true])).result.hash,
    receipt: async () =>
      (await gateway.rpc('eth_getTransactionReceipt', [transaction])).result.blockHash,
    logs: async () => (await gateway.rpc('eth_getLogs', [range])).result[0].blockHash,
  }
  const names = Object.keys(reads)
  for (const name of names) expect([name, await reads[name]?.()]).toEqual([name, stubHash(1000)])
  for (let round = 0; round < 4; round++) {
    const branch = `b${round}`
    node.fork = { above: 999, name: branch }
    // Not in the cache, so the node answers it.
    const fresh = await gateway.rpc('eth_getBlockByNumber', ['0x3e8', false])
    expect(fresh.result.hash).toBe(stubHash(1000, branch))
    const kept = await Promise.all(names.map(async (name) => [name, await reads[name]?.()]))
    expect(kept).toEqual(names.map((name) => [name, stubHash(1000, branch)]))
    await waitFor('the answers are kept again', async () => {
      const body = `{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x3e8",true]}`
      return (await gateway.post(body)).headers['x-portolan-cache'] === 'HIT'
    })
  }
})
