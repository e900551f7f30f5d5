import { startTonDevChain } from '../../../devnet/ton/ton-dev-chain.ts'
import { describeChain } from '../../../src/chains/testing/conformance.ts'
import { createTonChain } from '../../../src/chains/ton/chain.ts'
import { addressOf, createPayer, fundPayers } from './ton-payers.ts'

describeChain('of TON, on the development node', async () => {
  const dev = await startTonDevChain({ blockTimeMs: 0, startTime: 1_800_000_000, rounds: 2 })
  const payers = Array.from({ length: 10 }, (_, number) => createPayer(dev, number))
  await fundPayers(dev, payers)
  const chain = createTonChain({ upstreams: [{ url: dev.node_url }], pollMs: 50 })
  const account = (number: number): Buffer => {
    if (number < 10) return payers[number]!.bytes
    const made = Buffer.alloc(33, 0xa5)
    made[0] = 0
    made.writeUInt32BE(number, 29)
    return made
  }
  return {
    chain,
    account,
    pay: async ({ from, to, value }) => {
      const payer = payers.find(({ bytes }) => bytes.equals(from))
      await payer!.pay(addressOf(to), value)
      await dev.mine(2)
    },
    mine: async (count) => void (await dev.mine(count)),
    setMode: async (mode) => {
      dev.faults.clear()
      if (mode === 'down') dev.faults.add({ kind: 'reset' })
      if (mode === 'hanging') dev.faults.add({ kind: 'timeout' })
    },
    stop: async () => {
      await chain.stop()
      await dev.stop()
    },
  }
})
