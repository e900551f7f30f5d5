import { startPolkadotDevChain } from '../../../devnet/polkadot/node.ts'
import { describeChain } from '../../../src/chains/conformance.ts'
import { createPolkadotChain } from '../../../src/chains/polkadot/chain.ts'

describeChain('Asset Hub', async () => {
  // Blocks are final two blocks later, so that what is not yet final is there and must not show.
  const node = await startPolkadotDevChain({ manual: true, finality: 2 })
  const account = (number: number) => Buffer.from(node.signer(number).account)
  const numbers = new Map(
    Array.from({ length: 10 }, (_, number) => [account(number).toString('hex'), number]),
  )
  // An account needs a little to be there at all, more than the suite sends.
  for (let number = 10; number < 50; number++)
    await node.fund(node.address(account(number)), 10n ** 12n)
  node.mine(2)
  const chain = createPolkadotChain({ upstreams: [{ url: node.node_url }], pollMs: 200 })
  const caughtUp = async () => {
    const { number } = node.chain.final()
    const never = new AbortController().signal
    while ((await chain.head(never)).number < number);
  }
  return {
    chain,
    account,
    pay: async ({ from, to, value }) => {
      const signer = node.signer(numbers.get(from.toString('hex'))!)
      const dest = { type: 'Id', value: node.address(to) }
      const call = { pallet: 'Balances', call: 'transfer', value: { dest, value } }
      node.make({ extrinsics: [node.sign({ signer, ...call })] })
      node.mine(2)
      await caughtUp()
    },
    mine: async (count) => {
      node.mine(count)
      await caughtUp()
    },
    setMode: async (mode) => node.server.setMode(mode),
    stop: async () => {
      await chain.stop()
      await node.stop()
    },
  }
})
