import { createHash } from 'node:crypto'
import { beginCell, comment, external, internal, SendMode, storeMessage } from '@ton/core'
import { keyPairFromSeed } from '@ton/crypto'
import {
  JettonMaster,
  JettonWallet,
  TonClient,
  WalletContractV4,
  WalletContractV5R1,
} from '@ton/ton'
import { afterAll, expect, it } from 'vitest'
import { startTonDevChain } from '../../../devnet/ton/ton-dev-chain.ts'

// By the wall clock: the client's messages are valid for a minute.
const dev = await startTonDevChain({ blockTimeMs: 0 })
afterAll(dev.stop)
const client = new TonClient({ endpoint: `${dev.node_url}/jsonRPC` })
const keys = (name: string) => keyPairFromSeed(createHash('sha256').update(name).digest())
const [one, two] = [keys('one'), keys('two')]
const v4 = client.open(WalletContractV4.create({ workchain: 0, publicKey: one.publicKey }))
const v5 = client.open(
  WalletContractV5R1.create({ publicKey: two.publicKey, walletId: { networkGlobalId: -3 } }),
)
const coin = 1_000_000_000n

it('reads the masterchain, shards and their transactions', async () => {
  await dev.fund(v4.address.toRawString(), 100n * coin)
  await dev.fund(v5.address.toRawString(), 100n * coin)
  const info = await client.getMasterchainInfo()
  expect(info.latestSeqno).toBe(dev.chain.head().id.seqno)
  dev.chain.setDepth(1)
  await dev.mine(1)
  const shards = await client.getWorkchainShards(dev.chain.head().id.seqno)
  expect(shards.map(({ shard }) => BigInt.asUintN(64, BigInt(shard)).toString(16))).toEqual([
    '4000000000000000',
    'c000000000000000',
  ])
  const found = []
  for (let seqno = 1; seqno <= info.latestSeqno; seqno++)
    for (const { workchain, seqno: top, shard } of await client.getWorkchainShards(seqno))
      found.push(...(await client.getShardTransactions(workchain, top, shard)))
  expect(found.some(({ account }) => account.equals(v4.address))).toBe(true)
})

it('sends from third-party wallets, and reads the result', async () => {
  expect(await client.getBalance(v4.address)).toBe(100n * coin)
  expect((await client.getContractState(v4.address)).state).toBe('uninitialized')
  for (const [wallet, key] of [
    [v4, one],
    [v5, two],
  ] as const) {
    const to = wallet === v4 ? v5.address : v4.address
    const messages = [internal({ to, value: 2n * coin, bounce: false, body: comment('hello') })]
    const sendMode = SendMode.PAY_GAS_SEPARATELY | SendMode.IGNORE_ERRORS
    await wallet.sendTransfer({ seqno: 0, secretKey: key.secretKey, sendMode, messages })
    await dev.mine(3)
    expect(await wallet.getSeqno()).toBe(1)
    expect((await client.getContractState(wallet.address)).state).toBe('active')
  }
  const transactions = await client.getTransactions(v4.address, { limit: 10 })
  expect(transactions).toHaveLength(3)
  const [newest, middle] = transactions as [(typeof transactions)[0], (typeof transactions)[0]]
  const cursor = { lt: newest.lt.toString(), hash: newest.hash().toString('base64') }
  const [next] = await client.getTransactions(v4.address, { limit: 1, ...cursor })
  expect(next!.hash().equals(middle.hash())).toBe(true)
  const same = await client.getTransaction(v4.address, cursor.lt, cursor.hash)
  expect(same!.hash().equals(newest.hash())).toBe(true)
  const sent = middle.outMessages.values()[0]!.info
  if (sent.type !== 'internal') throw new Error('an internal message was expected')
  const located = await client.tryLocateResultTx(sent.src, sent.dest, sent.createdLt.toString())
  expect(located.inMessage?.info).toMatchObject({ value: { coins: 2n * coin } })
})

it('reads tokens through their get-methods', async () => {
  const jetton = await dev.deployJetton()
  await jetton.mint(v4.address, 5_000n)
  await dev.mine(2)
  const master = client.open(JettonMaster.create(jetton.master))
  const holder = await master.getWalletAddress(v4.address)
  expect(holder.equals(jetton.holderOf(v4.address))).toBe(true)
  expect(await client.open(JettonWallet.create(holder)).getBalance()).toBe(5_000n)
  expect((await master.getJettonData()).totalSupply).toBe(5_000n)
})

it('gets the reason of a refused message', async () => {
  const message = external({ to: v4.address, body: beginCell().endCell() })
  const boc = beginCell().store(storeMessage(message)).endCell().toBoc()
  await expect(client.sendFile(boc)).rejects.toMatchObject({
    response: {
      status: 500,
      data: { error: expect.stringMatching(/cannot apply external message/) },
    },
  })
})

it('refuses unknown parameters, as the real server does', async () => {
  const ask = async (body: object) => {
    const response = await fetch(`${dev.node_url}/jsonRPC`, {
      method: 'POST',
      body: JSON.stringify(body),
    })
    return [response.status, ((await response.json()) as { ok: boolean }).ok]
  }
  expect(await ask({ method: 'getShards', params: { seqno: 1 } })).toEqual([200, true])
  expect(await ask({ method: 'getShards', params: { seqno: 1, '@type': 'x' } })).toEqual([
    422,
    false,
  ])
  const rest = await fetch(`${dev.node_url}/getShards?seqno=1`)
  expect(await rest.json()).toMatchObject({ ok: true, result: { '@type': 'blocks.shards' } })
  expect((await fetch(`${dev.node_url}/getShards?seqno=1&x=2`)).status).toBe(422)
})
