import { Address } from '@ton/core'
import { expect, it } from 'vitest'
import { jettonTransfer } from '../../../devnet/ton/jetton.ts'
import { createPayer, fundPayers } from './ton-payers.ts'
import { startTonService } from './ton-service.ts'

const service = await startTonService({ globalId: -239, rounds: 2 })
const { dev, call, ask, mine, balanced } = service
const payer = createPayer(dev, 0)
await fundPayers(dev, [payer])
const jetton = await dev.deployJetton({ name: 'Beispiel', symbol: 'BSP', decimals: 6 })
const token_address = jetton.master.toRawString()
await jetton.mint(payer.address, 1_000n)
await mine(3)

const asset = { asset_type: 'ASSET_TYPE_T', token_address }
const fresh = (byte: number): Address => new Address(0, Buffer.alloc(32, byte))

/** Sends tokens without a notification to the owner: no message names the owner's own account. */
const pay = async (to: Address, amount: bigint): Promise<void> => {
  await payer.send(
    jettonTransfer({
      ...{ holder: jetton.holderOf(payer.address), to, amount, excessTo: payer.address },
      forward: 0n,
    }),
  )
  await mine(4)
}

it('a jetton that is imported for a wallet is tracked at its present and later addresses', async () => {
  const [early, late, batched] = [fresh(0x21), fresh(0x22), fresh(0x23)]
  const { wallet_id } = await call('RegisterWallet', { name: 'w', address: early.toRawString() })
  await pay(early, 5n)
  for (let times = 0; times < 2; times++) await call('ImportAsset', { wallet_id, ...asset })
  await balanced(early.toRawString(), { token_address, balance: 5n })
  await call('RegisterAddress', { wallet_id, address: late.toRawString() })
  await call('BatchRegisterAddresses', { wallet_id, addresses: [batched.toRawString()] })
  await pay(late, 7n)
  await pay(batched, 9n)
  await balanced(late.toRawString(), { token_address, balance: 7n })
  await balanced(batched.toRawString(), { token_address, balance: 9n })
  const { transfers } = await call('ListTransfers', { wallet_id, page_size: 100 })
  expect(
    transfers
      .filter((record: Record<string, string>) => record.token_address === token_address)
      .map(({ to, value, from }: Record<string, string>) => [to, value, from])
      .toSorted(),
  ).toEqual([
    [late.toRawString(), '7', payer.text],
    [batched.toRawString(), '9', payer.text],
  ])
  const { assets } = await call('ListAssets', { address: late.toRawString(), ...asset })
  expect(assets[0].token_account_address).toBe(jetton.holderOf(late).toRawString())
})

it('a jetton that is imported for the organization is tracked in wallets that come later', async () => {
  await call('ImportAsset', asset)
  const address = fresh(0x31)
  await call('RegisterWallet', { name: 'later', address: address.toRawString() })
  await pay(address, 11n)
  await balanced(address.toRawString(), { token_address, balance: 11n })
  const { transfers } = await call('ListTransfers', { address: address.toRawString() })
  expect(transfers).toMatchObject([{ value: '11', token_address, asset_type: 'ASSET_TYPE_T' }])
})

it('a contract that is not a jetton master is not tracked for a wallet', async () => {
  for (const other of [payer.text, fresh(0x41).toRawString(), jetton.holderOf(payer.address)]) {
    const answer = await ask('ImportAsset', { ...asset, token_address: other.toString() })
    expect(answer.status).toBe(400)
    expect(answer.json.errors[0].field).toBe('token_address')
  }
})
