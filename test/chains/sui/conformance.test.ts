import { startSuiNode } from '../../../devnet/sui/node.ts'
import { createSuiChain } from '../../../src/chains/sui/chain.ts'
import { describeChain } from '../../../src/chains/testing/conformance.ts'

for (const { transport, verification } of [
  { transport: 'grpc', verification: 'structural' },
  { transport: 'grpc-web', verification: 'structural' },
  { transport: 'grpc', verification: 'full' },
] as const)
  describeChain(`of Sui, on the dev node over ${transport}, ${verification}`, async () => {
    const node = await startSuiNode()
    const { ledger, faults } = node
    const chain = createSuiChain({
      upstreams: [{ url: node.url, transport }],
      verification,
      limits: { pollMs: 200, probeMs: 200, timeoutMs: 10_000 },
    })
    const account = (number: number): Buffer =>
      number < 10
        ? Buffer.from(node.key(number).toSuiAddress().slice(2), 'hex')
        : Buffer.alloc(32, number)
    const keys = new Map(
      Array.from({ length: 10 }, (_, i) => [account(i).toString('hex'), node.key(i)]),
    )
    return {
      chain,
      account,
      pay: async ({ from, to, value }) => {
        await node.pay(keys.get(from.toString('hex'))!, `0x${to.toString('hex')}`, value)
        ledger.seal()
      },
      mine: async (count) => {
        for (let i = 0; i < count; i++) ledger.seal()
      },
      setMode: async (mode) => {
        faults.mode = mode
        if (mode === 'up') await chain.head(AbortSignal.timeout(10_000))
      },
      stop: async () => {
        await chain.stop()
        await node.stop()
      },
    }
  })
