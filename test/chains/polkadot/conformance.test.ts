import { startPolkadotDevChain } from '../../../devnet/polkadot/node.ts'
import { createPolkadotChain } from '../../../src/chains/polkadot/chain.ts'
import { describeChain } from '../../../src/chains/testing/conformance.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { never } from './harness.ts'
import { testRuntimes } from './runtimes.ts'

for (const { name, spec } of testRuntimes())
  describeChain(name, async () => {
    // Blocks are final two blocks later, so that what is not yet final is there and must not show.
    const node = await startPolkadotDevChain({ manual: true, finality: 2, ...(spec && { spec }) })
    const account = (number: number) => Buffer.from(node.signer(number).account)
    const numbers = new Map(
      Array.from({ length: 10 }, (_, number) => [account(number).toString('hex'), number]),
    )
    // An account needs a little to be there at all, more than the suite sends.
    for (let number = 10; number < 50; number++)
      await node.fund(node.address(account(number)), 10n ** 12n)
    node.mine(2)
    const chain = createPolkadotChain({ upstreams: [{ url: node.node_url }], pollMs: 200 })
    // A node that was unreachable is called again after a pause, which is longer than a question waits.
    const caughtUp = () =>
      waitFor(
        'the chain has heard of the final block',
        async () => {
          const head = await chain.head(never).catch(() => undefined)
          return (head?.number ?? -1) >= node.chain.final().number
        },
        { timeoutMs: 40_000, everyMs: 1 },
      )
    return {
      chain,
      account,
      pay: async ({ from, to, value }) => {
        const signer = node.signer(numbers.get(from.toString('hex'))!)
        const dest = { type: 'Id', value: node.address(to) }
        const call = { pallet: 'Balances', call: node.transferCall, value: { dest, value } }
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
