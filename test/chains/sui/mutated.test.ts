// No transaction may stop a network: real checkpoints with broken transactions are decoded as far as they can
// be read, and the records of all other transactions stay the same.
import { GrpcTypes } from '@mysten/sui/grpc'
import { expect, it } from 'vitest'
import type { Movement } from '../../../src/chains/chain.ts'
import { MalformedCheckpointError, toBlock } from '../../../src/chains/sui/checkpoint.ts'
import { encodeBase58 } from '../../../src/lib/base58.ts'
import { createByteSet } from '../../../src/lib/bytes.ts'
import { createRandom } from '../../helpers/random.ts'
import { readCheckpoint } from './recorded.ts'

/** The campaign sets 10000. */
const count = Number(process.env.SUI_MUTATED ?? 2_000)
const perCheckpoint = 5
const everyone = {
  accounts: { has: (bytes: Uint8Array) => bytes.length > 0, size: 0 },
  contracts: createByteSet([]),
  tokenAccount: () => [],
}
type Executed = GrpcTypes.ExecutedTransaction
type Random = ReturnType<typeof createRandom>

const texts = [
  '',
  'x',
  '0x',
  '0x12',
  '\u0000',
  '-',
  '--1',
  '1e9',
  '9'.repeat(5_000),
  `0x${'g'.repeat(64)}`,
  '1'.repeat(44),
]

/** Breaks one field somewhere below a message: another text, another number, or nothing. */
function breakField(value: Record<string, unknown>, random: Random): void {
  const keys = Object.keys(value).filter((key) => value[key] !== undefined)
  const key = keys[Math.floor(random() * keys.length)]
  if (key === undefined) return
  const at = value[key]
  const pick = <item>(items: readonly item[]): item => items[Math.floor(random() * items.length)]!
  if (Array.isArray(at)) {
    const how = random()
    if (how < 0.2) value[key] = []
    else if (how < 0.4) value[key] = [...at, ...at]
    else if (at.length > 0) breakField(pick(at), random)
  } else if (typeof at === 'string') {
    const cut = Math.floor(random() * at.length)
    const flipped =
      at.slice(0, cut) + String.fromCharCode(32 + Math.floor(random() * 95)) + at.slice(cut + 1)
    value[key] = random() < 0.5 ? flipped : pick(texts)
  } else if (typeof at === 'bigint') value[key] = pick([0n, 1n, (1n << 64n) - 1n, at + 1n])
  else if (typeof at === 'boolean') value[key] = !at
  else if (typeof at === 'object' && at !== null && random() < 0.9)
    breakField(at as Record<string, unknown>, random)
  else delete value[key]
}

/** What a movement says, without its place: a broken transaction may have more or fewer changes. */
const saying = ({ ordinal: _, ...movement }: Movement): string =>
  JSON.stringify(movement, (_, value) => (typeof value === 'bigint' ? `${value}n` : value))

it(`decodes ${count} mutated real checkpoints, with every record of the transactions that are whole`, () => {
  const random = createRandom(22)
  const real = readCheckpoint()
  const sayings = new Map(
    real.transactions.map((transaction) => {
      const { movements } = toBlock({ ...real, transactions: [transaction] }).decode(everyone)
      return [transaction, movements.map(saying)]
    }),
  )
  let broken = 0
  let undecoded = 0
  for (let round = 0; round < count; round++) {
    const transactions = Array.from(
      { length: perCheckpoint },
      () => real.transactions[Math.floor(random() * real.transactions.length)]!,
    )
    const whole: Executed[] = []
    const mutated = transactions.map((transaction) => {
      if (random() < 0.7) {
        whole.push(transaction)
        return transaction
      }
      broken++
      const copy = structuredClone(transaction) as Executed
      for (let times = 1 + Math.floor(random() * 3); times > 0; times--)
        breakField(copy as unknown as Record<string, unknown>, random)
      // Over the wire, as a node would send it.
      const sent = GrpcTypes.ExecutedTransaction.create(copy as Executed)
      return GrpcTypes.ExecutedTransaction.fromBinary(GrpcTypes.ExecutedTransaction.toBinary(sent))
    })
    const block = toBlock({ ...real, transactions: mutated })
    for (const account of block.accounts(createByteSet([])))
      if (account.length !== 32) throw new Error('an account of another length')
    const content = block.decode(everyone)
    undecoded += content.undecoded?.length ?? 0
    const said = new Map<string, number>()
    for (const movement of content.movements) {
      for (const end of [movement.from, movement.to])
        if (end.length !== 0 && end.length !== 32) throw new Error('an address of another length')
      said.set(saying(movement), (said.get(saying(movement)) ?? 0) + 1)
    }
    for (const expected of whole.flatMap((transaction) => sayings.get(transaction)!)) {
      const left = said.get(expected) ?? 0
      if (left === 0) throw new Error(`round ${round} lost ${expected}`)
      said.set(expected, left - 1)
    }
  }
  expect(broken).toBeGreaterThan(count / 2)
  expect(undecoded).toBeGreaterThan(count / 10)
})

it('names a transaction that cannot be read, and keeps what can', () => {
  const { transactions, ...rest } = readCheckpoint()
  const paying = transactions[0]!
  const [first] = paying.balanceChanges
  const broken = { ...paying, balanceChanges: [{ ...first!, amount: 'many' }, first!] }
  const lost = { ...paying, digest: 'no digest' }
  const content = toBlock({ ...rest, transactions: [broken, lost] }).decode(everyone)
  expect(content.undecoded).toEqual([
    { hash: expect.any(Buffer), reason: 'transaction 0: cannot read balance change 0' },
    { hash: Buffer.alloc(0), reason: 'transaction 1: cannot read its digest' },
  ])
  expect(encodeBase58(content.undecoded![0]!.hash)).toBe(paying.digest)
  expect(content.movements.length).toBeGreaterThan(0)
})

it('refuses a checkpoint whose place in the chain cannot be read', () => {
  const real = readCheckpoint()
  for (const broken of [
    { ...real, sequenceNumber: 1n << 60n },
    { ...real, digest: '1'.repeat(100_000) },
    { ...real, summary: { ...real.summary!, timestamp: { seconds: 1n << 60n, nanos: 0 } } },
  ])
    expect(() => toBlock(broken)).toThrow(MalformedCheckpointError)
})
