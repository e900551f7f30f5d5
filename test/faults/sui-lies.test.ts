// Full verification: every kind of false claim about a checkpoint is refused and named, and following continues
// with an honest node.
import type { GrpcTypes } from '@mysten/sui/grpc'
import { expect, it } from 'vitest'
import type { SuiNode } from '../../devnet/sui/node.ts'
import { BlockForgedError, type Chain, type Tracked } from '../../src/chains/chain.ts'
import { createByteSet } from '../../src/lib/bytes.ts'
import { waitFor } from '../helpers/wait-for.ts'
import { connect, expectGapless, genesis, record, start } from './sui-nodes.ts'

type Checkpoint = GrpcTypes.Checkpoint
const verificationOf = (chain: Chain) => chain.status!().verification!

/** Payments, an end of an epoch in the middle, and payments of the next epoch. */
const startEpochs = async (): Promise<SuiNode> => {
  const node = await start()
  const receiver = `0x${'cd'.repeat(32)}`
  for (let epoch = 0; epoch < 3; epoch++) {
    for (let i = 0; i < 3; i++) {
      await node.pay(node.key(1), receiver, 5n)
      node.ledger.seal()
    }
    node.ledger.seal(undefined, { endsEpoch: true })
  }
  await node.pay(node.key(1), receiver, 5n)
  node.ledger.seal()
  return node
}
/** Following does not end while the only node lies. */
const patient = { patienceMs: 600_000 }
const last = ({ ledger }: SuiNode) => ledger.history.newest().number

it('follows committees from the first epoch on, and one certificate proves a page', async () => {
  const node = await startEpochs()
  const { chain } = connect({ upstreams: [{ url: node.url }], verification: 'full' })
  const seen = record(chain, genesis(node))
  await waitFor('the head', () => seen.last() === last(node))
  expectGapless(seen.numbers, 1)
  const { mode, anchor, checked, refused } = verificationOf(chain)
  expect({ mode, anchor, refused }).toEqual({
    mode: 'full',
    anchor: 'committee of epoch 0, as nodes said',
    refused: {},
  })
  expect(checked).toMatchObject({ checkpoints: 13, transactions: 13 })
  // Of three ends of epochs and of the last one.
  expect(checked.certificates).toBeLessThanOrEqual(6)
})

it('follows committees from a trusted checkpoint, and refuses another history', async () => {
  const node = await startEpochs()
  const { history } = node.ledger
  const trusted = { number: 4, digest: history.at(4)!.digest }
  const options = { upstreams: [{ url: node.url }], verification: 'full' as const }
  const { chain } = connect({ ...options, trusted })
  const at = (number: number) => chain.header(number, AbortSignal.timeout(10_000))
  const seen = record(chain, (await at(10))!)
  await waitFor('the head', () => seen.last() === last(node))
  expect(verificationOf(chain)).toMatchObject({ anchor: 'checkpoint 4', refused: {} })

  const wrong = { number: 4, digest: history.at(5)!.digest }
  const other = connect({ ...options, trusted: wrong, limits: patient })
  const none = record(other.chain, (await at(10))!)
  await waitFor('a refusal', () => verificationOf(other.chain).refused.trusted_checkpoint! > 0)
  expect(none.numbers).toEqual([])
})

const lies: [kind: string, lie: (checkpoint: Checkpoint) => Checkpoint][] = [
  ['summary', (one) => ({ ...one, digest: '11111111111111111111111111111112' })],
  [
    'summary',
    (one) => ({
      ...one,
      summary: { ...one.summary!, timestamp: { seconds: 1n, nanos: 0 } },
    }),
  ],
  [
    'certificate',
    (one) => ({ ...one, signature: { ...one.signature!, bitmap: Buffer.alloc(18, 1) } }),
  ],
  ['certificate', ({ signature: _, ...one }) => one],
  ['transactions', (one) => ({ ...one, transactions: [] })],
  ['transactions', (one) => ({ ...one, transactions: [...one.transactions, ...one.transactions] })],
  [
    'effects',
    (one) => ({
      ...one,
      transactions: one.transactions.map((executed) => ({
        ...executed,
        effects: { ...executed.effects!, status: { success: false } },
      })),
    }),
  ],
  [
    'effects',
    (one) => ({
      ...one,
      transactions: one.transactions.map((executed) => ({
        ...executed,
        effects: { ...executed.effects!, gasUsed: { computationCost: 1n } },
      })),
    }),
  ],
]

it.each(lies)(
  'refuses a false claim about %s (%#) and continues with another node',
  async (kind, lie) => {
    const node = await startEpochs()
    const honest = await node.openEndpoint()
    honest.faults.mode = 'down'
    node.faults.tamper = lie
    const { chain } = connect({
      upstreams: [{ url: node.url }, { url: honest.url }],
      verification: 'full',
      limits: patient,
    })
    const seen = record(chain, genesis(node))
    await waitFor('a refusal', () => verificationOf(chain).refused[kind]! > 0)
    expect(seen.numbers).toEqual([])
    honest.faults.mode = 'up'
    await waitFor('the head', () => seen.last() === last(node))
    expectGapless(seen.numbers, 1)
    expect(Object.keys(verificationOf(chain).refused)).toEqual([kind])
    expect(chain.status!().upstreams![0]!.state).not.toBe('healthy')
  },
)

it('refuses checkpoints of a committee that does not sign them', async () => {
  const node = await startEpochs()
  node.faults.falseCommittee = true
  const { chain } = connect({
    upstreams: [{ url: node.url }],
    verification: 'full',
    limits: patient,
  })
  const seen = record(chain, genesis(node))
  await waitFor('a refusal', () => verificationOf(chain).refused.certificate! > 0)
  expect(seen.numbers).toEqual([])

  const honest = [await node.openEndpoint(), await node.openEndpoint()]
  const most = connect({
    upstreams: [node, ...honest].map(({ url }) => ({ url })),
    verification: 'full',
  })
  const followed = record(most.chain, genesis(node))
  await waitFor('the head', () => followed.last() === last(node))
})

type Change = GrpcTypes.BalanceChange
const receiver = `0x${'cd'.repeat(32)}`
const tracked: Tracked = {
  accounts: createByteSet([Buffer.from(receiver.slice(2), 'hex')]),
  contracts: createByteSet([]),
  tokenAccount: () => [],
}
/** Another amount, another receiver, a change that is left out, a change that is made up. */
const falseAmounts: [name: string, lie: (changes: Change[]) => Change[]][] = [
  ['an amount', (all) => all.map((one) => ({ ...one, amount: String(BigInt(one.amount!) * 2n) }))],
  ['a receiver', (all) => all.map((one) => ({ ...one, address: `0x${'ee'.repeat(32)}` }))],
  ['a change that is left out', () => []],
  ['a coin type', (all) => all.map((one) => ({ ...one, coinType: '0x2::lie::LIE' }))],
  ['a change that is made up', (all) => [...all, { ...all[0]!, address: `0x${'ef'.repeat(32)}` }]],
]
const withChanges = (one: Checkpoint, lie: (changes: Change[]) => Change[]): Checkpoint => ({
  ...one,
  transactions: one.transactions.map((executed) => ({
    ...executed,
    balanceChanges: lie(executed.balanceChanges),
  })),
})
const signal = AbortSignal.timeout(60_000)

it('proves amounts, sender and gas payer of tracked accounts from effects and objects', async () => {
  const node = await startEpochs()
  const { chain } = connect({ upstreams: [{ url: node.url }], verification: 'full' })
  const block = await chain.block(1, {}, signal)
  const accounts = [...block.accounts(tracked.contracts)].map((one) => one.toString('hex'))
  expect(accounts).toContain('cd'.repeat(32))
  expect(block.needsCheck!({ ...tracked, accounts: createByteSet([]) })).toBe(false)
  expect(block.needsCheck!(tracked)).toBe(true)
  await block.check!(tracked, signal)
  expect(block.needsCheck!(tracked)).toBe(false)
  expect(block.decode(tracked).movements).toMatchObject([{ value: 5n }])
  expect(verificationOf(chain).checked).toMatchObject({ amounts: 1, parties: 1 })
})

it('refuses false amounts, names them and distrusts the node', async () => {
  const node = await startEpochs()
  const { chain } = connect({
    upstreams: [{ url: node.url }],
    verification: 'full',
    limits: patient,
  })
  for (const [name, lie] of falseAmounts) {
    node.faults.tamper = (one) => withChanges(one, lie)
    const block = await chain.block(1, {}, signal)
    // Effects name the owners, so that a change that is left out is found.
    expect([...block.accounts(tracked.contracts)], name).toContainEqual(
      Buffer.from(receiver.slice(2), 'hex'),
    )
    expect(block.needsCheck!(tracked), name).toBe(true)
    await expect(block.check!(tracked, signal), name).rejects.toThrow(BlockForgedError)
  }
  expect(verificationOf(chain).refused).toEqual({ amounts: falseAmounts.length })
  expect(verificationOf(chain).last_refusal).toMatch(/^transaction \w+ has other balance changes$/)
  expect(chain.status!().upstreams![0]!.state).not.toBe('healthy')
})

it('refuses a false sender, false objects and objects that no node has', async () => {
  const node = await startEpochs()
  const { chain } = connect({
    upstreams: [{ url: node.url }],
    verification: 'full',
    limits: patient,
  })
  node.faults.tamper = (one) => ({
    ...one,
    transactions: one.transactions.map((executed) => ({
      ...executed,
      transaction: { ...executed.transaction!, sender: receiver },
    })),
  })
  const forged = await chain.block(1, {}, signal)
  await expect(forged.check!(tracked, signal)).rejects.toThrow('another sender or gas payer')
  node.faults.tamper = undefined

  node.faults.tamperObject = (one) => {
    const value = Uint8Array.from(one.bcs!.value!)
    value[60]! ^= 1
    return { ...one, bcs: { ...one.bcs!, value } }
  }
  const block = await chain.block(1, {}, signal)
  await expect(block.check!(tracked, signal)).rejects.toThrow('do not have their digests')
  node.faults.tamperObject = undefined
  expect(verificationOf(chain).refused).toMatchObject({ parties: 1, objects: expect.any(Number) })

  node.faults.withoutObjects = true
  await expect(block.check!(tracked, signal)).rejects.toThrow('checkpoint 1 cannot be verified')
  node.faults.withoutObjects = false
  await block.check!(tracked, signal)
  expect(block.needsCheck!(tracked)).toBe(false)
})
