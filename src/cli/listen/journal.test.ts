import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { createJournal } from './journal.ts'

const key = Buffer.alloc(32, 7)
const secret = `whsec_${key.toString('base64')}`

const deliver = (id: string, data: object, signedWith = key) => {
  const body = JSON.stringify({ webhook_id: 'w', webhook_history_id: id, data })
  const timestamp = `${Math.floor(Date.now() / 1000)}`
  const mac = createHmac('sha256', signedWith).update(`${id}.${timestamp}.${body}`)
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${mac.digest('base64')}`,
  }
  return { headers, body: Buffer.from(body) }
}

test('deliveries are verified and described, gaps and repetitions named', async () => {
  const journal = createJournal({ secrets: [secret], json: false })
  const transfer = { asset_type: 'ASSET_TYPE_C', value: '5', from: '0xa', to: '0xb' }
  const transfers = [{ ...transfer, transfer_state: 'TRANSFER_STATE_SUCCESS' }]
  const lines = [
    await journal.enter(
      deliver('a', { sequence: 4, transaction_hash: '0x1', confirmations: 1, transfers }),
    ),
    await journal.enter(deliver('c', { sequence: 6, test: true })),
    await journal.enter(
      deliver('b', {
        sequence: 5,
        transaction: { transaction_id: 'x', transaction_state: 'TRANSACTION_STATE_SENT' },
      }),
    ),
    await journal.enter(deliver('b', { sequence: 5, test: true })),
    await journal.enter(deliver('d', { sequence: 9 }, Buffer.alloc(32, 8))),
  ]
  expect(lines.join('\n')).toMatchInlineSnapshot(`
    "#4  verified  0x1, 1 confirmation
        5 ASSET_TYPE_C  0xa → 0xb  TRANSFER_STATE_SUCCESS
    #6  verified  test notification
        not here yet: 5
    #5  verified  transaction x is TRANSACTION_STATE_SENT
    #5  verified, delivered before  test notification
    #9  REFUSED: No signature of the delivery fits the secret.  no notification"
  `)
  expect(journal.summary()).toBe('5 deliveries, 1 refused, 0 numbers missing.')
})

test('invalid JSON is reported, and JSON can be printed', async () => {
  const journal = createJournal({ secrets: [], json: true })
  const line = await journal.enter({ headers: {}, body: Buffer.from('<html>') })
  expect(JSON.parse(line)).toEqual({
    verified: null,
    problem: '',
    repeated: false,
    skipped: [],
    body: {},
  })
})
