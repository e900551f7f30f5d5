import { afterAll, expect, it } from 'vitest'
import { freshDatabase } from '../helpers/database.ts'
import { startSendingBench } from './harness.ts'
import { createOwner, refusal } from './owner.ts'

const { db } = await freshDatabase()
const bench = await startSendingBench(db)
afterAll(bench.stop)
const { anvil, accounts, caller, clock, get, mine, reaches } = bench
const [from] = accounts as [string]
const { create, signed, sendOne, whole } = await createOwner(bench)
const hourMs = 3_600_000

/** Waits until the sender has checked a transaction again and shows this error. */
const says = async (transaction_id: string, words: string) => {
  const lookAgain = async () => {
    clock.shift(31_000)
    return (await get(transaction_id)).last_error
  }
  await expect.poll(lookAgain, { timeout: 20_000, interval: 500 }).toContain(words)
}

it('names the forgotten transaction that a later one waits for, until its nonce is filled', async () => {
  const forgotten = await create()
  const later = await whole()
  const { nonce } = forgotten
  const holder = `Waits for nonce ${nonce} of transaction ${forgotten.transaction_id}, which is TRANSACTION_STATE_CREATED`
  expect(later.last_error).toContain(holder)
  await says(later.transaction_id, holder)
  await signed(forgotten.transaction_id)
  await says(later.transaction_id, 'TRANSACTION_STATE_SIGNED: send it')
  await caller.call('CancelTransaction', { transaction_id: forgotten.transaction_id })
  await says(later.transaction_id, `Waits for nonce ${nonce}, which no transaction`)
  clock.shift(10 * 60_000)
  expect(await get(later.transaction_id)).toMatchObject({ stuck: true })
  const filling = await whole()
  expect(filling.nonce).toBe(nonce)
  await mine(3)
  for (const { transaction_id } of [filling, later])
    expect(await get(transaction_id)).toMatchObject({
      transaction_state: 'TRANSACTION_STATE_CONFIRMED',
      last_error: '',
      stuck: false,
    })
})

it('names the transaction that the nodes refused for funds, and their words', async () => {
  const { transaction_id } = await create({ value: '1000000000000000000' })
  await signed(transaction_id)
  await anvil.call('anvil_setBalance', [from, '0x2386f26fc10000'])
  const error = await refusal(caller.call('SendTransaction', { transaction_id }))
  expect(error.reason).toBe('TRANSACTION_REFUSED')
  const later = await whole({ value: '1' })
  expect(later.last_error).toMatch(
    new RegExp(
      `of transaction ${transaction_id}, .*SIGNED because the nodes refused it .*funds`,
      'i',
    ),
  )
  await anvil.call('anvil_setBalance', [from, '0x21e19e0c9bab2400000'])
  await sendOne(transaction_id)
  await mine(3)
  await reaches(transaction_id, 'CONFIRMED')
  await reaches(later.transaction_id, 'CONFIRMED')
})

it('says that the price is too low for the blocks of now, and what price would replace it', async () => {
  const { transaction_id, nonce } = await whole({ gas_price: '5000000000' })
  await anvil.call('anvil_setNextBlockBaseFeePerGas', ['0x12a05f2000'])
  await mine()
  clock.shift(10 * 60_000)
  await says(transaction_id, 'gas_price 5000000000 is below what the nodes ask for now')
  const { stuck, last_error } = await get(transaction_id)
  expect(stuck).toBe(true)
  const [, price] = /gas_price (\d+) or more/.exec(last_error)!
  const replacing = await whole({ nonce: Number(nonce), gas_price: String(BigInt(price!) * 2n) })
  await mine(3)
  await reaches(replacing.transaction_id, 'CONFIRMED')
  await reaches(transaction_id, 'REPLACED')
})

it('cancels transactions not signed in time, and reuses their nonce', async () => {
  const { webhook_id } = await caller.call('RegisterWebhook', {
    webhook_endpoint: 'https://receiver.invalid',
    confirmation: 1,
  })
  const [forgotten, kept] = [await create(), await create()]
  await signed(kept.transaction_id)
  clock.shift(72 * hourMs - 60_000)
  const young = await create()
  clock.shift(121_000)
  const { last_error } = await reaches(forgotten.transaction_id, 'CANCELED')
  expect(last_error).toBe('Canceled: no signature came within 72 hours.')
  expect((await get(kept.transaction_id)).transaction_state).toBe('TRANSACTION_STATE_SIGNED')
  expect((await get(young.transaction_id)).transaction_state).toBe('TRANSACTION_STATE_CREATED')
  expect((await refusal(signed(forgotten.transaction_id))).reason).toBe('TRANSACTION_STATE_INVALID')
  expect((await create()).nonce).toBe(forgotten.nonce)
  const { webhook_histories } = await caller.call('ListWebhookHistories', { webhook_id })
  const answered = JSON.stringify(webhook_histories)
  expect(answered).toContain('TRANSACTION_STATE_CANCELED')
})
