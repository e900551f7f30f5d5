import {
  Address,
  beginCell,
  Cell,
  comment,
  internal,
  loadMessage,
  type MessageRelaxed,
} from '@ton/core'
import { describe, expect, it } from 'vitest'
import { jettonTransfer } from '../../../devnet/ton/jetton.ts'
import { seqnoOf } from '../../../devnet/ton/purse.ts'
import { normalizedHash } from '../../../src/chains/ton/cells.ts'
import { createPayer, fundPayers } from './ton-payers.ts'
import { startTonService } from './ton-service.ts'

const service = await startTonService({ globalId: -239, rounds: 2 })
const { dev, call, ask, mine, balanced } = service
const coin = 1_000_000_000n
const payers = Array.from({ length: 4 }, (_, number) => createPayer(dev, number))
const [alice, bob, stranger] = payers as [
  (typeof payers)[0],
  (typeof payers)[0],
  (typeof payers)[0],
]
await fundPayers(dev, payers)

type Transfer = Record<string, string>

const registered = async (address: string, fields: object = {}): Promise<string> =>
  (await call('RegisterWallet', { name: 'wallet', address, ...fields })).wallet_id
const transfersOf = async (address: string): Promise<Transfer[]> =>
  (await call('ListTransfers', { address, page_size: 100 })).transfers
const fresh = (byte: number): Address => new Address(0, Buffer.alloc(32, byte))

await registered(alice.text, { import_asset: true })
await registered(bob.text, { import_asset: true })

/** What each of alice's transfers from a moment on says. */
const during = async (address: string, work: () => Promise<void>): Promise<Transfer[]> => {
  const before = new Set(
    (await transfersOf(address)).map((t) => t.transaction_hash! + t.transfer_hash),
  )
  await work()
  const after = await transfersOf(address)
  return after.filter((t) => !before.has(t.transaction_hash! + t.transfer_hash)).toReversed()
}

describe('addresses of T', () => {
  it('are the same account in every form, and are shown raw and user-friendly', async () => {
    const account = fresh(0x21)
    const raw = account.toRawString()
    const wallet_id = await registered(account.toString({ bounceable: true }))
    const friendly = account.toString({ bounceable: false, urlSafe: true })
    for (const form of [
      raw,
      raw.toUpperCase(),
      friendly,
      account.toString({ bounceable: false, urlSafe: false }),
    ])
      expect(await call('GetAddress', { address: form })).toEqual({
        address: raw,
        wallet_id,
        user_friendly_address: friendly,
      })
    const { wallet } = await call('GetWallet', { wallet_id })
    expect(wallet.addresses).toEqual([raw])
    expect(wallet.address_mapping).toEqual([{ address: raw, user_friendly_address: friendly }])
  })

  it.each([
    [
      'a wrong checksum',
      `${fresh(1).toString().slice(0, -1)}${fresh(1).toString().endsWith('A') ? 'B' : 'A'}`,
    ],
    ['a user-friendly form in lower case', fresh(0xab).toString().toLowerCase()],
    ['another workchain', `1:${'ab'.repeat(32)}`],
    ['workchain 300', `300:${'ab'.repeat(32)}`],
    ['workchain 1e0', `1e0:${'ab'.repeat(32)}`],
    ['the mark of test networks', fresh(2).toString({ testOnly: true })],
    ['a blank before it', ` 0:${'ab'.repeat(32)}`],
    ['something after it', `0:${'ab'.repeat(32)}:1`],
    ['too few digits', `0:${'ab'.repeat(31)}`],
  ])('are refused with %s', async (_, address) => {
    const { status, json } = await ask('RegisterWallet', { name: 'x', address })
    expect(status).toBe(400)
    expect(JSON.stringify(json)).toContain('"address"')
  })
})

describe('transfers of T', () => {
  it('show both ends of a payment, with its comment, in their own transactions', async () => {
    const [out] = await during(alice.text, async () => {
      await alice.send(
        internal({ to: bob.address, value: coin, bounce: true, body: comment('Grüße 1') }),
      )
      await mine(2)
    })
    const received = (await transfersOf(bob.text)).find(
      (t) => t.transfer_hash === out?.transfer_hash,
    )
    expect(out).toMatchObject({
      asset_type: 'ASSET_TYPE_T',
      from: alice.text,
      to: bob.text,
      value: String(coin),
      status: 'success',
      bounced: 'false',
      message: 'Grüße 1',
      transfer_type: 'TRANSFER_TYPE_OUTGOING',
      from_user_friendly_address: alice.address.toString({ bounceable: false }),
      workchain: '0',
      shard: '8000000000000000',
    })
    expect(received).toMatchObject({ message: 'Grüße 1', transfer_type: 'TRANSFER_TYPE_INCOMING' })
    expect(received?.transaction_hash).not.toBe(out?.transaction_hash)
    for (const transfer of [out!, received!]) {
      const found = await call('ListTransfers', { transaction_hash: transfer.transaction_hash })
      expect(found.transfers).toEqual([transfer])
    }
    await balanced(alice.text)
    await balanced(bob.text)
  })

  it('credit payments to an account that is not deployed, unless they may bounce', async () => {
    const account = fresh(0x31)
    const text = account.toRawString()
    await registered(text)
    const kept = await during(text, async () => {
      await alice.pay(account, 3n * coin)
      await mine(2)
    })
    expect(kept).toMatchObject([{ status: 'success', value: String(3n * coin), bounced: 'false' }])
    const back = await during(text, async () => {
      await alice.send(internal({ to: account, value: (3n * coin) / 2n, bounce: true }))
      await mine(3)
    })
    expect(back).toMatchObject([
      { status: 'failed', value: '1500000000', transfer_type: 'TRANSFER_TYPE_INCOMING' },
      { bounced: 'true', transfer_type: 'TRANSFER_TYPE_OUTGOING', to: alice.text },
    ])
    await balanced(text)
  })

  it('say that an outgoing one bounced, in the old form and in the new', async () => {
    for (const flags of [0n, 1n, 3n]) {
      const body = comment(
        'a comment that is longer than the 256 bits that the old form brings back',
      )
      const message = internal({ to: fresh(0x41), value: coin / 2n, bounce: true, body })
      if (message.info.type === 'internal') message.info.ihrFee = flags
      const seen = await during(alice.text, async () => {
        await alice.send(message)
        await mine(4)
      })
      expect(seen).toMatchObject([
        { status: 'failed', bounced: 'true', transfer_type: 'TRANSFER_TYPE_OUTGOING' },
        { status: 'success', bounced: 'true', transfer_type: 'TRANSFER_TYPE_INCOMING' },
      ])
      expect(seen[0]?.message).toMatch(/^a comment/)
      expect(seen[1]?.message).toMatch(flags === 3n ? /^a comment/ : /^/)
      await balanced(alice.text)
    }
  })

  it('are one per message of a batch, and one with the fee alone for messages never sent', async () => {
    const same = (): MessageRelaxed => internal({ to: fresh(0x51), value: 5n, bounce: false })
    const batch = await during(alice.text, async () => {
      await alice.send(same(), same(), same(), same())
      await mine(2)
    })
    expect(batch).toHaveLength(4)
    expect(new Set(batch.map((t) => t.transaction_hash)).size).toBe(1)
    expect(new Set(batch.map((t) => t.transfer_hash)).size).toBe(4)
    for (const [mode, status] of [
      [3, 'success'],
      [1, 'failed'],
    ] as const) {
      const fee = await during(alice.text, async () => {
        const message = internal({ to: fresh(0x52), value: 9_000_000n * coin, bounce: false })
        await alice.send({ message, mode })
        await mine(2)
      })
      expect(fee).toMatchObject([
        { from: alice.text, to: '', value: '0', transfer_hash: '', status },
      ])
      expect(fee[0]!.fee_paid).toBe(fee[0]!.transaction_fee)
    }
    await balanced(alice.text)
  })

  it('are found by the hash of the external message, and a replay is none', async () => {
    const seqno = seqnoOf(dev.chain.account(alice.text).data)
    const message = internal({ to: bob.address, value: 77n, bounce: false })
    const order = alice.purse.order(seqno, [{ message }])
    const seen = await during(alice.text, async () => {
      await dev.chain.send(order)
      await mine(2)
    })
    expect(seen).toMatchObject([{ value: '77' }])
    const external = loadMessage(Cell.fromBoc(order)[0]!.beginParse())
    for (const form of ['hex', 'base64', 'base64url'] as const) {
      const transaction_hash = normalizedHash(external)!.toString(form)
      expect((await call('ListTransfers', { transaction_hash })).transfers).toEqual(seen)
    }
    const before = dev.chain.account(alice.text).balance
    await expect(dev.chain.send(order)).rejects.toThrow('exit code 409')
    await mine(1)
    expect(dev.chain.account(alice.text).balance).toBe(before)
  })

  it('keep as much of a comment as there is room for, and never half a sign', async () => {
    // Half of a sign that takes two units is not text for the database, and would stop the tracker.
    const [long, text] = ['a'.repeat(4_095), `${'a'.repeat(4_095)}😀`]
    const seen = await during(alice.text, async () => {
      await alice.send(
        internal({ to: bob.address, value: 9n, bounce: false, body: comment(text) }),
        internal({ to: bob.address, value: 8n, bounce: false, body: comment('\u0000😀\u0007') }),
      )
      await mine(2)
    })
    expect(seen).toMatchObject([
      { value: '9', message: long },
      { value: '8', message: '\ufffd😀\u0007', message_hex: '00f09f988007' },
    ])
    const invoice = beginCell()
      .storeUint(0, 32)
      .storeBuffer(Buffer.from([0xff, 0x61]))
      .endCell()
    const none = await during(alice.text, async () => {
      await alice.send(internal({ to: bob.address, value: 7n, bounce: false, body: invoice }))
      await mine(2)
    })
    expect(none).toMatchObject([{ value: '7', message: '' }])
  })

  it('hold the workchain of the masterchain too', async () => {
    const account = new Address(-1, Buffer.alloc(32, 0x61))
    await registered(account.toRawString())
    const seen = await during(account.toRawString(), async () => {
      await alice.pay(account, coin)
      await mine(3)
    })
    expect(seen).toMatchObject([
      { to: account.toRawString(), workchain: '-1', value: String(coin) },
    ])
    await balanced(account.toRawString())
  })

  it('are filtered by time', async () => {
    const { transfers } = await call('ListTransfers', {
      address: alice.text,
      end_time: 1_800_000_000,
    })
    expect(transfers).toEqual([])
    const all = await call('ListTransfers', { address: alice.text, start_time: 1_800_000_000 })
    expect(all.transfers.length).toBeGreaterThan(0)
  })
})

describe('jettons', async () => {
  const jetton = await dev.deployJetton({ name: 'Beispiel', symbol: 'BSP', decimals: 6 })
  const token_address = jetton.master.toRawString()
  await jetton.mint(alice.address, 1_000n)
  await jetton.mint(stranger.address, 500n)
  await mine(3)
  const holder = jetton.holderOf(alice.address)
  const asset = { asset_type: 'ASSET_TYPE_T', token_address }
  const tokens = (transfers: Transfer[]) =>
    transfers.filter((t) => t.token_address === token_address)

  it('are imported by their master, by their account, or not at all', async () => {
    await call('ImportAsset', { address: alice.text, ...asset })
    await balanced(alice.text, { token_address, balance: 1_000n })
    const { assets } = await call('ListAssets', { address: alice.text, ...asset })
    expect(assets[0].token_account_address).toBe(holder.toRawString())
    const bobs = jetton.holderOf(bob.address).toRawString()
    await call('ImportAsset', {
      address: bob.text,
      ...asset,
      token_account_address: bobs,
    })
    await balanced(bob.text, { token_address, balance: 0n })
    for (const wrong of [
      { address: bob.text, ...asset, token_account_address: holder.toRawString() },
      { address: bob.text, ...asset, token_address: alice.text },
      { address: bob.text, ...asset, token_address: fresh(3).toRawString() },
      {
        address: bob.text,
        asset_type: 'ASSET_TYPE_T',
        token_account_address: bobs.replace('0:', '-1:'),
      },
    ])
      expect((await ask('ImportAsset', wrong)).status).toBe(400)
    await call('ImportAsset', {
      asset_type: 'ASSET_TYPE_T',
      token_account_address: holder.toRawString(),
    })
  })

  it.each([1n, 0n])('are seen at both ends with a forward amount of %s', async (forward) => {
    const payload = comment('invoice 7')
    const before = (await transfersOf(bob.text)).length
    const seen = tokens(
      await during(alice.text, async () => {
        await alice.send(
          jettonTransfer({
            ...{ holder, to: bob.address, amount: 250n, excessTo: alice.address },
            ...{ forward, payload },
          }),
        )
        await mine(5)
      }),
    )
    expect(seen).toMatchObject([
      { from: alice.text, to: bob.text, value: '250', message: 'invoice 7', status: 'success' },
    ])
    const received = tokens(await transfersOf(bob.text))
    expect(received[0]).toMatchObject({
      ...{ from: alice.text, to: bob.text, value: '250', message: 'invoice 7' },
      ...{ transfer_type: 'TRANSFER_TYPE_INCOMING', transfer_hash: seen[0]?.transfer_hash },
    })
    const arrived = (await transfersOf(bob.text)).length - before
    expect(arrived).toBe(forward === 0n ? 1 : 2)
    await balanced(alice.text)
    await balanced(bob.text)
  })

  it('have the balance that the chain has, and moved none of what was refused', async () => {
    await balanced(alice.text, { token_address, balance: 500n })
    await balanced(bob.text, { token_address, balance: 500n })
    const seen = await during(alice.text, async () => {
      const order = { holder, to: bob.address, amount: 501n, excessTo: alice.address }
      await alice.send(jettonTransfer(order))
      await mine(4)
    })
    expect(tokens(seen)).toEqual([])
    expect(seen).toMatchObject([
      { status: 'failed', bounced: 'true', to: holder.toRawString() },
      { status: 'success', bounced: 'true', from: holder.toRawString() },
    ])
    await balanced(alice.text, { token_address, balance: 500n })
  })

  it('come back where the jetton wallet of the receiver refuses them', async () => {
    // What the notification costs on its way is more than the transfer brings along, so that the
    // receiver's jetton wallet cannot execute the message, which bounces.
    let payload = beginCell().endCell()
    for (let number = 0; number < 100; number++)
      payload = beginCell().storeBuffer(Buffer.alloc(120, number)).storeRef(payload).endCell()
    const order = { holder, to: bob.address, amount: 40n, excessTo: alice.address, payload }
    const before = (await transfersOf(bob.text)).length
    const seen = await during(alice.text, async () => {
      await alice.send(jettonTransfer({ ...order, forward: 100_000_000n, value: 160_000_000n }))
      await mine(6)
    })
    const [out, back] = tokens(seen)
    expect(out).toMatchObject({
      ...{ from: alice.text, to: bob.text, value: '40', status: 'failed', bounced: 'true' },
      transfer_type: 'TRANSFER_TYPE_OUTGOING',
    })
    expect(back).toMatchObject({
      ...{ from: '', to: alice.text, value: '40', status: 'success', bounced: 'true' },
      transfer_type: 'TRANSFER_TYPE_INCOMING',
    })
    expect(tokens(seen)).toHaveLength(2)
    expect((await transfersOf(bob.text)).length).toBe(before)
    await balanced(alice.text, { token_address, balance: 500n })
    await balanced(bob.text, { token_address, balance: 500n })
    await balanced(alice.text)
    const { token_account_address } = (await call('ListAssets', { address: alice.text, ...asset }))
      .assets[0]
    expect(dev.chain.account(token_account_address).data?.beginParse().loadCoins()).toBe(500n)
  })

  it('do not come from a stranger that claims them', async () => {
    const body = beginCell()
      .storeUint(0x7362d09c, 32)
      .storeUint(0, 64)
      .storeCoins(999_999_999n)
      .storeAddress(stranger.address)
      .storeBit(false)
      .endCell()
    const seen = await during(alice.text, async () => {
      await stranger.send(internal({ to: alice.address, value: 1n, bounce: false, body }))
      await mine(2)
    })
    expect(tokens(seen)).toEqual([])
    expect(seen).toMatchObject([{ value: '1', from: stranger.text }])
    await balanced(alice.text, { token_address, balance: 500n })
  })
})
