import { expect, it } from 'vitest'
import { noteOnce, pairAtOnce } from './noted.ts'

const limits = { inline: 256, perEvent: 4 }
const organization_id = 'o'

const transfers = (transactions: number, each: number, walletOf: (at: number) => string) =>
  Array.from({ length: transactions }, (_, number) =>
    Array.from({ length: each }, (_, at) => ({
      organization_id,
      wallet_id: walletOf(at),
      transaction_hash: Buffer.from(`${number}`),
      block_number: 7,
    })),
  ).flat()

/** Notes transfers, and counts what was asked and read for it. */
const note = (
  events: ReturnType<typeof transfers>,
  webhooks: Record<string, number>,
  most = limits.inline,
) => {
  const seen = { described: 0, read: 0 }
  const lists = new Map(
    Object.entries(webhooks).map(([id, count]) => {
      const list = Array.from({ length: count }, (_, at) => `${id}-${at}`)
      const reading = new Proxy(list, {
        get: (target, name) => {
          if (typeof name === 'string' && /^\d+$/.test(name)) seen.read++
          return Reflect.get(target, name)
        },
      })
      return [id, reading]
    }),
  )
  const webhooksOf = (id: string): readonly string[] => lists.get(id) ?? []
  const noted = noteOnce(events, webhooksOf, ({ block_number, transaction_hash }) => {
    seen.described++
    return { block_number, key: [transaction_hash] }
  })
  return { noted, pairs: pairAtOnce(noted, webhooksOf, { limits, most }), seen }
}

it('a transaction of 4,000 transfers is described once and paired once with each of 256 webhooks', () => {
  const { noted, pairs, seen } = note(
    transfers(1, 4_000, () => 'w'),
    { o: 200, w: 56 },
  )
  expect(noted).toHaveLength(1)
  expect(new Set(pairs?.map(({ webhook }) => webhook)).size).toBe(256)
  expect(seen).toEqual({ described: 1, read: 256 })
})

it('a transaction of 16,000 wallets has each wallet once, and reads the webhooks of all wallets once', () => {
  const { noted, pairs, seen } = note(
    transfers(1, 32_000, (at) => `w${at % 16_000}`),
    { o: 256 },
  )
  expect(noted[0]?.wallet_ids.size).toBe(16_000)
  expect(pairs).toHaveLength(256)
  expect(seen).toEqual({ described: 1, read: 256 })
})

it('nothing is paired where there are more notifications than are written at once', () => {
  const { noted, pairs, seen } = note(
    transfers(10_000, 1, () => 'w'),
    { o: 250 },
  )
  expect(noted).toHaveLength(10_000)
  expect(pairs).toBeUndefined()
  expect(seen.read).toBe(0)
})

it('a list that may be longer than was read is not written at once', () => {
  expect(
    note(
      transfers(100, 1, () => 'w'),
      { w: 257 },
    ).pairs,
  ).toBeUndefined()
})

it('a wallet without webhooks is not noted', () => {
  const { noted } = note(
    transfers(1, 2, (at) => `w${at}`),
    { w1: 1 },
  )
  expect(noted.map(({ wallet_ids }) => [...wallet_ids])).toEqual([['w1']])
})
