import { Address, internal } from '@ton/core'
import { storageKey } from '../devnet/polkadot/bytes.ts'
import { startPolkadotDevChain } from '../devnet/polkadot/node.ts'
import { startRelay } from '../devnet/polkadot/relay.ts'
import { startSuiNode } from '../devnet/sui/node.ts'
import { startLiteServer } from '../devnet/ton/lite-server.ts'
import { createPurse } from '../devnet/ton/purse.ts'
import { startTonDevChain } from '../devnet/ton/ton-dev-chain.ts'

// A development node of one family with blocks full of payments, in a process of its own, so that its work is not
// counted. Every block pays the same receiver once.
const [family, ...numbers] = process.argv.slice(2)
const [blocks = 0, payments = 0] = numbers.map(Number)

const nodes: Record<string, () => Promise<object>> = {
  ton: async () => {
    const dev = await startTonDevChain({ blockTimeMs: 0, startTime: 1_800_000_000 })
    const purse = createPurse(Buffer.alloc(32, 1))
    await dev.fund(purse.address.toRawString(), 10n ** 15n)
    await dev.mine(2)
    const first = dev.chain.head().id.seqno
    const addressOf = (number: number): Address => {
      const hash = Buffer.alloc(32, 7)
      hash.writeUInt32BE(number)
      return new Address(0, hash)
    }
    for (let block = 0; block < blocks; block++) {
      const messages = Array.from({ length: payments }, (_, at) => ({
        message: internal({ to: addressOf(at), value: 1_000_000n, bounce: false, body: 'payment' }),
      }))
      await dev.chain.send(purse.order(block, messages))
      await dev.mine(1)
    }
    await dev.mine(1)
    const lite = await startLiteServer(dev.chain, { globalId: -3, keyEvery: 50 })
    const { seqno, root_hash, file_hash } = lite.trusted()
    return {
      first,
      url: dev.node_url,
      lite: { url: `tcp://${lite.host}:${lite.port}`, key: lite.key.toString('base64') },
      trusted: [seqno, root_hash.toString('hex'), file_hash.toString('hex')].join(':'),
      receiver: `00${addressOf(0).hash.toString('hex')}`,
    }
  },
  sui: async () => {
    const node = await startSuiNode({})
    const addressOf = (number: number) => `0x${number.toString(16).padStart(64, 'c')}`
    for (let block = 0; block < blocks; block++) {
      for (let at = 0; at < payments; at++)
        await node.pay(node.key(1 + (at % 4)), addressOf(at), 5n)
      node.ledger.seal()
    }
    return { first: 0, url: node.url, receiver: addressOf(0).slice(2) }
  },
  polkadot: async () => {
    const node = await startPolkadotDevChain({ manual: true })
    node.mine(2)
    const first = node.chain.best().number
    const stored = node.chain.best().state.get(storageKey('ParachainInfo', 'ParachainId'))!
    const para_id = Buffer.from(stored).readUInt32LE(0)
    const relay = await startRelay({ para_id, head: node.chain.best().header })
    const trusted = relay.newest()
    for (let block = 0; block < blocks; block++) {
      const extrinsics = Array.from({ length: payments }, (_, at) =>
        node.sign({
          signer: node.signer(1),
          nonce: block * payments + at,
          pallet: 'Balances',
          call: 'transfer',
          value: {
            dest: { type: 'Id', value: node.address(node.signer(100 + at).account) },
            value: 10n ** 12n,
          },
        }),
      )
      relay.make(node.make({ extrinsics }).header)
    }
    return {
      first,
      url: node.node_url,
      relay: relay.url,
      para_id,
      trusted: `${trusted.number}:${trusted.hash}`,
      receiver: Buffer.from(node.signer(100).account).toString('hex'),
    }
  },
}
process.stdout.write(`${JSON.stringify(await nodes[family ?? '']!())}\n`)
