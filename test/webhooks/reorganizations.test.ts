import { randomUUID } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import type { BlockHeader } from '../../src/chains/chain.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { findCursor } from '../../src/storage/tracking/blocks.ts'
import { startTracker } from '../../src/workers/tracker/tracker.ts'
import { freshDatabase } from '../helpers/database.ts'
import { createRandom } from '../helpers/random.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { realClock } from './fake-clock.ts'
import { createWebhookBench } from './harness.ts'
import { startReceiver } from './receiver.ts'

const database = await freshDatabase()
const { db } = database

type Notified = { sequence: number; states: string[]; hash: string; blocks: number[] }

it.each([
  { confirmation: 0, seed: 1 },
  { confirmation: 1, seed: 2 },
  { confirmation: 3, seed: 3 },
  { confirmation: 6, seed: 4 },
])('around $confirmation confirmations: what left the chain is retracted', async (given) => {
  const { confirmation, seed } = given
  const random = createRandom(seed)
  const webhooks = await createWebhookBench(database, 'c', realClock)
  const { bench, caller } = webhooks
  const { chain, network_id, account, address } = bench
  const receiver = await startReceiver()
  await caller.call('RegisterWallet', { name: 'w', address: address(1), confirmation: 1 })
  await webhooks.register(receiver.url, { confirmation })
  const courier = webhooks.startCourier()
  const tracker = startTracker({
    db,
    clock: systemClock,
    log: silentLog,
    holder: randomUUID(),
    name: { chain: chain.service, network: 'mainnet' },
    network_id,
    chain,
  })
  onTestFinished(tracker.stop)
  const atHead = async () => {
    const head = chain.canonical().at(-1)!
    await waitFor('the tracker is at the head', async () => {
      const cursor = await findCursor(db, network_id)
      return cursor?.block_hash.equals(head.hash) === true
    })
  }
  await atHead()

  let value = 1n
  const transaction = () => [{ movements: [{ from: account(9), to: account(1), value: value++ }] }]
  const heads: BlockHeader[] = []
  for (let step = 0; step < 30; step++) {
    const blocks = chain.canonical()
    const depth = Math.floor(random() * Math.min(8, blocks.length - 1))
    const left = heads.filter(({ hash }) => !blocks.some((block) => block.hash.equals(hash)))
    if (random() < 0.3 && left.length > 0) {
      // Back to a branch that was left before.
      heads.push(blocks.at(-1)!)
      chain.resume(left[Math.floor(random() * left.length)]!)
      while (chain.canonical().length <= blocks.length) chain.mine()
    } else if (random() < 0.35 && depth > 0) {
      heads.push(blocks.at(-1)!)
      const branch = Array.from({ length: depth + 1 }, () => (random() < 0.5 ? transaction() : []))
      chain.reorganize(depth, branch)
    } else chain.mine(random() < 0.7 ? transaction() : [])
    // Sometimes two changes come before the tracker reads.
    if (random() < 0.7) await atHead()
    courier.wake()
  }
  await atHead()
  await webhooks.settled(courier)

  const notified = receiver.received
    .map(({ json }) => json.data)
    .map(
      (data): Notified => ({
        sequence: data.sequence,
        hash: data.transaction_hash,
        states: data.transfers.map((one: { transfer_state: string }) => one.transfer_state),
        blocks: data.transfers.map((one: { block_number: number }) => one.block_number),
      }),
    )
    .sort((a, b) => a.sequence - b.sequence)
  expect(notified.map(({ sequence }) => sequence)).toEqual(notified.map((_, index) => index + 1))

  const blocks = chain.canonical()
  const head = blocks.at(-1)!.number
  const onChain = new Set(
    blocks
      .filter(({ number }) => number <= head - Math.max(confirmation, 1) + 1)
      .flatMap(({ transactions }) =>
        transactions.map(({ hash }) => bench.family.formatTransactionHash(hash)),
      ),
  )
  const last = new Map(notified.map((one) => [one.hash, one]))
  const standing = [...last.values()]
    .filter(({ states }) => !states.includes('TRANSFER_STATE_REORGED'))
    .map(({ hash }) => hash)
  // The last word on every transaction is the truth, and there is one on each.
  expect(new Set(standing)).toEqual(onChain)
  // A word is retracted after it was said, and once.
  for (const mine of Map.groupBy(
    notified,
    ({ hash, blocks: [block] }) => `${hash}/${block}`,
  ).values()) {
    const words = mine.map(({ states }) => states.includes('TRANSFER_STATE_REORGED'))
    expect(words).toEqual(words.map((_, index) => index % 2 === 1))
  }
  if (confirmation <= 3)
    expect(notified.some(({ states }) => states[0]?.endsWith('REORGED'))).toBe(true)
})
