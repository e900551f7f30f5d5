import { expect, test } from 'vitest'
import { toCloudEvents } from './cloud-event.ts'

const source = { organization_id: 'o1', chain: 'c', network: 'mainnet' }
const rowOf = (data: object) => ({
  webhook_id: 'w1',
  webhook_history_id: 'h1',
  sequence: 42,
  type: 'transfer' as const,
  create_time: new Date('2026-11-16T12:00:00Z'),
  data: JSON.stringify(data),
})
const parsed = (data: object) =>
  toCloudEvents(source, rowOf(data)).map(({ id, wallet, body }) => ({
    ...{ id, wallet },
    event: JSON.parse(body.toString('utf8')),
  }))

test('an event of one wallet is one CloudEvents envelope', () => {
  const data = { sequence: 42, confirmations: 1, transfers: [{ wallet_id: 'a', value: '7' }] }
  expect(parsed(data)).toEqual([
    {
      id: 'h1',
      wallet: 'a',
      event: {
        specversion: '1.0',
        id: 'h1',
        source: '/organizations/o1/c/mainnet',
        type: 'portolan.transfer',
        subject: 'a',
        time: '2026-11-16T12:00:00.000Z',
        datacontenttype: 'application/json',
        sequence: '00000000000000000042',
        part: 1,
        parts: 1,
        partitionkey: 'o1/c/mainnet/a',
        data,
      },
    },
  ])
})

test('an event of two wallets is one message for each, with its own transfers', () => {
  const transfers = [
    { wallet_id: 'a', value: '1' },
    { wallet_id: 'b', value: '2' },
    { wallet_id: 'a', value: '3' },
  ]
  const found = parsed({ sequence: 42, transfers })
  expect(found.map(({ id, wallet, event }) => [id, wallet, event.part, event.parts])).toEqual([
    ['h1.1', 'a', 1, 2],
    ['h1.2', 'b', 2, 2],
  ])
  expect(found.map(({ event }) => event.data)).toEqual([
    { sequence: 42, transfers: [transfers[0], transfers[2]] },
    { sequence: 42, transfers: [transfers[1]] },
  ])
})

test('an event that is too long for a broker is divided without loss', () => {
  const transfers = Array.from({ length: 300 }, (_, index) => ({
    wallet_id: 'a',
    value: `${index}`,
    token_data: 'é'.repeat(4_000),
  }))
  const messages = toCloudEvents(source, rowOf({ transfers }))
  expect(messages.length).toBeGreaterThan(3)
  expect(Math.max(...messages.map(({ body }) => body.length))).toBeLessThan(600_000)
  const found = messages.flatMap(({ body }) => JSON.parse(body.toString('utf8')).data.transfers)
  expect(found).toEqual(transfers)
  expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length)
})

test('the event of a managed transaction belongs to its wallet, a test event to none', () => {
  const [state] = parsed({ transaction: { wallet_id: 'a' } })
  expect(state).toMatchObject({ wallet: 'a', event: { subject: 'a' } })
  const [none] = parsed({ test: true, transfers: [] })
  expect(none?.wallet).toBe('_')
  expect(none?.event).not.toHaveProperty('subject')
})
