import { parseArgs } from 'node:util'
import { startPolkadotDevChain } from '../devnet/polkadot/node.ts'

// A node with blocks full of transfers, in a process of its own, so that its work is not counted.
const { values } = parseArgs({
  options: { blocks: { type: 'string' }, transfers: { type: 'string' } },
})
const [blocks, transfers] = [Number(values.blocks), Number(values.transfers)]
const node = await startPolkadotDevChain({ manual: true })
node.mine(2)
const addressOf = (number: number) => node.address(node.signer(number).account)
const receivers = Array.from({ length: 50 }, (_, at) => addressOf(100 + at))
for (let block = 0; block < blocks; block++) {
  const extrinsics = Array.from({ length: transfers }, (_, at) =>
    node.sign({
      signer: node.signer(1),
      nonce: block * transfers + at,
      pallet: 'Balances',
      call: 'transfer',
      value: {
        dest: { type: 'Id', value: receivers[at % receivers.length]! },
        value: 10n ** 12n + BigInt(at),
      },
    }),
  )
  const made = node.make({ extrinsics })
  if (made.extrinsics.length !== transfers + 2) throw new Error('the block had no room')
}
const receiver = Buffer.from(node.signer(100).account).toString('hex')
process.stdout.write(`${JSON.stringify({ node_url: node.node_url, receiver })}\n`)
