import { ChannelCredentials } from '@grpc/grpc-js'
import { type GrpcTypes, SuiGrpcClient } from '@mysten/sui/grpc'
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519'
import { Secp256k1Keypair } from '@mysten/sui/keypairs/secp256k1'
import { coinWithBalance, Transaction } from '@mysten/sui/transactions'
import { GrpcTransport } from '@protobuf-ts/grpc-transport'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { devCoin } from '../../../devnet/sui/accounts.ts'
import { SUI } from '../../../devnet/sui/coins.ts'
import { type SuiNode, startSuiNode } from '../../../devnet/sui/node.ts'
import { waitFor } from '../../helpers/wait-for.ts'

const transports = {
  'native gRPC': (url: string) =>
    new SuiGrpcClient({
      network: 'localnet',
      transport: new GrpcTransport({
        host: new URL(url).host,
        channelCredentials: ChannelCredentials.createInsecure(),
      }),
    }),
  'gRPC-web': (url: string) =>
    new SuiGrpcClient({ network: 'localnet', baseUrl: url, format: 'binary' }),
  'gRPC-web in text': (url: string) => new SuiGrpcClient({ network: 'localnet', baseUrl: url }),
}

describe.each(Object.entries(transports))('the SDK over %s', (_, connect) => {
  let node: SuiNode
  let client: SuiGrpcClient
  let alice: Ed25519Keypair
  const bob = Secp256k1Keypair.fromSecretKey(new Uint8Array(32).fill(7))
  const include = { balanceChanges: true, effects: true } as const
  beforeAll(async () => {
    node = await startSuiNode({ blockTimeMs: 25 })
    client = connect(node.url)
    alice = node.key(1)
  })
  afterAll(() => node.stop())

  const send = async (build: (transaction: Transaction) => void, signer = alice) => {
    const transaction = new Transaction()
    transaction.setSender(signer.toSuiAddress())
    build(transaction)
    const result = await client.signAndExecuteTransaction({ transaction, signer, include })
    const done = result.Transaction ?? result.FailedTransaction!
    await client.waitForTransaction({ digest: done.digest })
    await waitFor('the checkpoint', () => node.ledger.find(done.digest)?.checkpoint !== undefined)
    return { ...done, ok: result.$kind === 'Transaction' }
  }
  const changeOf = (
    { balanceChanges }: { balanceChanges: { address: string; amount: string; coinType: string }[] },
    who: { toSuiAddress(): string },
    type = SUI,
  ) =>
    BigInt(
      balanceChanges.find((one) => one.address === who.toSuiAddress() && one.coinType === type)
        ?.amount ?? 0,
    )

  it('builds, signs and executes a payment', async () => {
    const done = await send((transaction) => {
      const [coin] = transaction.splitCoins(transaction.gas, [123_000_000])
      transaction.transferObjects([coin], bob.toSuiAddress())
    })
    expect(done.ok).toBe(true)
    expect(changeOf(done, bob)).toBe(123_000_000n)
    const { gasUsed } = done.effects!
    const bill =
      BigInt(gasUsed.computationCost) + BigInt(gasUsed.storageCost) - BigInt(gasUsed.storageRebate)
    expect(changeOf(done, alice)).toBe(-123_000_000n - bill)
    const { balance } = await client.getBalance({ owner: bob.toSuiAddress() })
    expect(balance.balance).toBe('123000000')
  })

  it('moves another coin, into an address balance and out of it', async () => {
    const carol = new Ed25519Keypair()
    await send((transaction) => {
      transaction.transferObjects(
        [coinWithBalance({ type: devCoin, balance: 250_000n })],
        carol.toSuiAddress(),
      )
    })
    await send((transaction) => {
      for (const [type, balance] of [
        [devCoin, 50_000n],
        [SUI, 900_000_000n],
      ] as const)
        transaction.moveCall({
          target: '0x2::coin::send_funds',
          typeArguments: [type],
          arguments: [
            transaction.add(coinWithBalance({ type, balance })),
            transaction.pure.address(carol.toSuiAddress()),
          ],
        })
    })
    const owner = carol.toSuiAddress()
    const { balance } = await client.getBalance({ owner, coinType: devCoin })
    expect(balance).toMatchObject({
      balance: '300000',
      coinBalance: '250000',
      addressBalance: '50000',
    })
    const { balances } = await client.listBalances({ owner })
    expect(balances.map((one) => one.balance).toSorted()).toEqual(['300000', '900000000'])
    // All of it, from both places, with the gas out of the address balance.
    const done = await send((transaction) => {
      transaction.transferObjects(
        [coinWithBalance({ type: devCoin, balance: 300_000n })],
        alice.toSuiAddress(),
      )
    }, carol)
    expect(done.ok).toBe(true)
    expect(changeOf(done, carol, devCoin)).toBe(-300_000n)
    expect(changeOf(done, carol)).toBeLessThan(0n)
  })

  it('takes the gas from a sponsor', async () => {
    const sponsor = node.key(2)
    const transaction = new Transaction()
    transaction.setSender(alice.toSuiAddress())
    transaction.setGasOwner(sponsor.toSuiAddress())
    const coins = node.ledger.live.coinsOf(alice.toSuiAddress(), SUI)
    transaction.transferObjects([transaction.object(coins.at(-1)!.id)], bob.toSuiAddress())
    const bytes = await transaction.build({ client })
    const signatures = await Promise.all(
      [alice, sponsor].map(async (key) => (await key.signTransaction(bytes)).signature),
    )
    const result = await client.executeTransaction({ transaction: bytes, signatures, include })
    const done = result.Transaction!
    expect(changeOf(done, alice)).toBe(-coins.at(-1)!.balance)
    expect(changeOf(done, sponsor)).toBeLessThan(0n)
    await node.pay(node.key(3), alice.toSuiAddress(), 5_000_000_000n)
  })

  it('lets a transaction fail on chain, for gas only', async () => {
    const done = await send((transaction) => {
      transaction.moveCall({ target: '0xde7::calls::fail', arguments: [transaction.pure.u64(3)] })
    })
    expect(done.ok).toBe(false)
    expect(done.balanceChanges).toHaveLength(1)
    expect(done.status.error?.message).toContain('abort')
  })

  it('refuses a wrong signer, a used coin and an unknown transaction', async () => {
    const transaction = new Transaction()
    transaction.setSender(alice.toSuiAddress())
    const [coin] = transaction.splitCoins(transaction.gas, [1])
    transaction.transferObjects([coin], bob.toSuiAddress())
    const bytes = await transaction.build({ client })
    const execute = async (key: Ed25519Keypair | Secp256k1Keypair) =>
      await client.executeTransaction({
        transaction: bytes,
        signatures: [(await key.signTransaction(bytes)).signature],
      })
    await expect(execute(bob)).rejects.toThrow('Signature')
    await node.pay(alice, bob.toSuiAddress(), 1n)
    await expect(execute(alice)).rejects.toThrow('not available for consumption')
    await expect(client.getTransaction({ digest: 'A'.repeat(44) })).rejects.toThrow('not found')
  })

  it('streams every checkpoint, and lists the same', async () => {
    const ending = new AbortController()
    const paths = ['sequence_number', 'digest', 'summary.previous_digest', 'transactions.digest']
    const seen: GrpcTypes.Checkpoint[] = []
    const stream = client.subscriptionService.subscribeCheckpoints(
      { readMask: { paths } },
      { abort: ending.signal },
    )
    for await (const { cursor, checkpoint } of stream.responses) {
      expect(checkpoint!.sequenceNumber).toBe(cursor)
      seen.push(checkpoint!)
      if (seen.length === 10) break
    }
    ending.abort()
    const listed: GrpcTypes.Checkpoint[] = []
    const first = seen[0]!.sequenceNumber!
    const list = client.ledgerService.listCheckpoints({
      startCheckpoint: first,
      endCheckpoint: first + 10n,
      readMask: { paths },
    })
    for await (const { checkpoint } of list.responses) if (checkpoint) listed.push(checkpoint)
    expect(listed).toEqual(seen)
    for (const [at, one] of seen.entries())
      if (at > 0) expect(one.summary!.previousDigest).toBe(seen[at - 1]!.digest)
    expect((await client.ledgerService.getServiceInfo({})).response.server).toContain('simulator')
  })
})
