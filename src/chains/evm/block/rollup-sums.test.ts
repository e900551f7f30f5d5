// Generated blocks of each kind of network, booked by the rules of its nodes. For every account the sum of its
// records, less the fees that they count, is the change of its balance.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createByteSet } from '../../../lib/bytes.ts'
import type { TransferView } from '../../chain.ts'
import { readBlock, whyRefused } from '../codec/header.ts'
import { bytesOf, type RawLog, toQuantity } from '../codec/raw.ts'
import { provesReceipts } from '../codec/receipts.ts'
import { coinMintTopic, coinTransferTopic, transferTopic } from '../codec/topics.ts'
import { evmFamily } from '../family.ts'
import { addressOf, stubBlock, wordOf } from '../testing/stub-chain.ts'
import { createBlock } from './block.ts'
import { stateSyncHash } from './coin-logs.ts'
import type { InternalTransfer } from './traces.ts'

type Ledger = { move(from: string | undefined, to: string | undefined, value: bigint): void }
/** One transaction: what nodes show of it, after it was booked. */
type Made = {
  transaction: object
  receipt?: object
  logs?: RawLog[]
  internal?: InternalTransfer[]
}
type Kind = (numbers: Numbers, ledger: Ledger) => Made
type Numbers = { from: string; to: string; third: string; a: bigint; b: bigint; failed: boolean }

const accounts = [1, 2, 3, 4].map(addressOf)
const gasUsed = 100n
const price = 7n
const gas = gasUsed * price

const statusOf = (failed: boolean) => ({ status: failed ? '0x0' : '0x1' })
/** A payment with a fee, and one inside of it. */
const pay =
  (type: string, { fee = gas, transaction = {}, receipt = {} } = {}): Kind =>
  ({ from, to, third, a, b, failed }, ledger) => {
    ledger.move(from, undefined, fee)
    if (!failed) ledger.move(from, to, a)
    if (!failed) ledger.move(to, third, b)
    return {
      transaction: { type, from, to, value: toQuantity(a), ...transaction },
      receipt: { ...statusOf(failed), ...receipt },
      internal: failed ? [] : [{ from: to, to: third, value: b }],
    }
  }

const log = (address: string, topics: string[], ...words: bigint[]): RawLog => ({
  ...{ address, topics },
  data: `0x${words.map((word) => wordOf(word).slice(2)).join('')}`,
})

const opDeposit: Kind = ({ from, to, a, b, failed }, ledger) => {
  ledger.move(undefined, from, b)
  if (!failed) ledger.move(from, to, a)
  return {
    transaction: { type: '0x7e', from, to, value: toQuantity(a), mint: toQuantity(b) },
    receipt: { ...statusOf(failed), l1Fee: '0x9' },
  }
}

/** What is sent to Mantle as its coin is minted; the other coin of the deposit is a token, which logs show. */
const mantleDeposit: Kind = (numbers, ledger) => {
  const made = opDeposit(numbers, ledger)
  const transaction = { ...made.transaction, ethValue: '0x77', ethTxValue: '0x77' }
  return { ...made, transaction, receipt: statusOf(numbers.failed) }
}

/** The sender of a message has the coin already: contracts of the network give it out. */
const message: Kind = ({ from, to, third, a, b, failed }, ledger) => {
  if (!failed) ledger.move(from, to, a)
  if (!failed) ledger.move(to, third, b)
  return {
    transaction: { type: '0x7e', from, to, value: toQuantity(a), queueIndex: '0x9' },
    receipt: { ...statusOf(failed), l1Fee: '0x0' },
    internal: failed ? [] : [{ from: to, to: third, value: b }],
  }
}

const arbitrumDeposit: Kind = ({ from, to, a }, ledger) => {
  ledger.move(undefined, from, a)
  ledger.move(from, to, a)
  return {
    transaction: { type: '0x64', from, to, value: toQuantity(a) },
    receipt: { gasUsed: '0x0' },
  }
}

const arbitrumInternal: Kind = () => ({
  transaction: { type: '0x6a', from: addressOf(0xa4b05), to: addressOf(0xa4b05), value: '0x0' },
  receipt: { gasUsed: '0x0', effectiveGasPrice: '0x0' },
})

const zksyncCoin = '0x000000000000000000000000000000000000800a'
const bootloader = addressOf(0x8001)
/** The value is minted for the sender and sent, and the rest is minted for another account. */
const zksyncRequest: Kind = ({ from, to, third, a, b, failed }, ledger) => {
  const mint = (account: string, value: bigint) => {
    ledger.move(undefined, account, value)
    return log(zksyncCoin, [coinMintTopic, wordOf(account)], value)
  }
  const logs = [mint(bootloader, gas)]
  if (failed) logs.push(mint(third, a + b))
  else {
    logs.push(mint(from, a))
    ledger.move(from, to, a)
    logs.push(log(zksyncCoin, [transferTopic, wordOf(from), wordOf(to)], a))
    logs.push(mint(third, b))
  }
  return {
    transaction: { type: '0xff', from, to, value: toQuantity(a) },
    receipt: statusOf(failed),
    logs,
    // What traces show of it is in the logs already.
    internal: failed ? [] : [{ from, to, value: a }],
  }
}

const celoCoin = '0x471ece3750da237f93b8e339c536989b8978a438'
/** Coin is sent as a token, beside a payment by value, and some is minted. No call shows either. */
const celoToken: Kind = (numbers, ledger) => {
  const { from, to, third, a, b, failed } = numbers
  const made = pay('0x2')(numbers, ledger)
  if (failed) return made
  ledger.move(from, third, a)
  ledger.move(undefined, to, b)
  const zero = addressOf(0)
  const logs = [
    log(celoCoin, [transferTopic, wordOf(from), wordOf(third)], a),
    log(celoCoin, [transferTopic, wordOf(zero), wordOf(to)], b),
    // Another token, an event of another kind and an event with too many topics move no coin.
    log(addressOf(0xcccc), [transferTopic, wordOf(from), wordOf(to)], b),
    log(celoCoin, [coinMintTopic, wordOf(from), wordOf(to)], b),
    log(celoCoin, [transferTopic, wordOf(from), wordOf(to), wordOf(1)], b),
  ]
  return { ...made, logs }
}

const polygonCoin = '0x0000000000000000000000000000000000001010'
const stateSync =
  (type: string): Kind =>
  ({ to, third, a, b }, ledger) => {
    const zero = addressOf(0)
    const paid = (account: string, value: bigint) => {
      ledger.move(polygonCoin, account, value)
      const topics = [coinTransferTopic, wordOf(polygonCoin), wordOf(polygonCoin), wordOf(account)]
      return log(polygonCoin, topics, value, 0n, 0n, 0n, 0n)
    }
    const free = { gasUsed: '0x0', effectiveGasPrice: '0x0' }
    const transaction = { type, from: zero, to: zero, value: '0x0', gas: '0x0' }
    return { transaction, receipt: free, logs: [paid(to, a), paid(third, b)] }
  }

const networks: Record<string, readonly Kind[]> = {
  Ethereum: [
    pay('0x0'),
    pay('0x2'),
    pay('0x3', { fee: gas + 40n, receipt: { blobGasUsed: '0xa', blobGasPrice: '0x4' } }),
    pay('0x4'),
  ],
  'the OP stack': [
    opDeposit,
    pay('0x2', { fee: gas + 5n, receipt: { l1Fee: '0x5' } }),
    pay('0x2', {
      fee: gas + 5n + gasUsed * 3n * 100n + 2n,
      receipt: {
        ...{ l1Fee: '0x5', operatorFeeScalar: '0x3', operatorFeeConstant: '0x2' },
        ...{ daFootprintGasScalar: '0x190', blobGasUsed: '0x99' },
      },
    }),
  ],
  Arbitrum: [
    arbitrumDeposit,
    arbitrumInternal,
    pay('0x2', { receipt: { gasUsedForL1: '0x32' } }),
    pay('0x65'),
    pay('0x66'),
  ],
  ZKsync: [zksyncRequest, pay('0x71'), pay('0x2')],
  Celo: [
    pay('0x7b', { fee: 0n, transaction: { feeCurrency: addressOf(0xcccc) } }),
    pay('0x7b', { transaction: { feeCurrency: null } }),
    pay('0x2'),
    celoToken,
  ],
  Scroll: [message, pay('0x2', { fee: gas + 5n, receipt: { l1Fee: '0x5' } })],
  Mantle: [mantleDeposit, pay('0x2', { receipt: { l1Fee: '0x5', tokenRatio: '0xbb8' } })],
  Morph: [
    message,
    pay('0x7f', { fee: 0n, transaction: { feeTokenID: '0x2' } }),
    pay('0x7f', { transaction: { feeTokenID: '0x0' } }),
  ],
  'Polygon since Madhugiri': [pay('0x2'), stateSync('0x7f')],
}

const numbers = fc.record({
  ...{ from: fc.constantFrom(...accounts), to: fc.constantFrom(...accounts) },
  third: fc.constantFrom(...accounts),
  ...{ a: fc.bigInt(0n, 10n ** 20n), b: fc.bigInt(1n, 10n ** 20n), failed: fc.boolean() },
})

function createLedger() {
  const changes = new Map<string, bigint>()
  const add = (account: string | undefined, change: bigint) => {
    if (account !== undefined) changes.set(account, (changes.get(account) ?? 0n) + change)
  }
  return {
    changes,
    move: (from: string | undefined, to: string | undefined, value: bigint) => {
      add(from, -value)
      add(to, value)
    },
  }
}

/** What the records of an account add up to. */
function sumOf(block: ReturnType<typeof createBlock>, account: string): bigint {
  const own = bytesOf(account)
  const { movements } = block.decode({
    accounts: createByteSet([own]),
    contracts: createByteSet([]),
    tokenAccount: () => [],
  })
  let sum = 0n
  for (const { from, to, value, failed, only, ordinal, transaction_fee } of movements) {
    const isSender = from.equals(own)
    if (isSender && evmFamily.paysFee({ side: 0, ordinal } as TransferView)) sum -= transaction_fee
    if (failed) continue
    if (isSender) sum -= value
    if (to.equals(own) && only !== 'from') sum += value
  }
  return sum
}

const blockOf = (
  made: readonly Made[],
  hashes: readonly (string | undefined)[] = [],
  coinContract = celoCoin,
) => {
  const { block, receipts, number } = stubBlock(made.map(({ logs = [] }) => ({ logs })))
  const transactions = block.transactions.map((one, index) => ({
    ...{ ...one, ...made[index]!.transaction },
    hash: hashes[index] ?? one.hash,
  }))
  const rules = { proof: 'none' as const, unproven_types: new Set<number>() }
  return createBlock({
    block: readBlock({ ...block, transactions }, { number, rules })!,
    receipts: receipts.map((one, index) => ({
      ...{ ...one, gasUsed: toQuantity(gasUsed), effectiveGasPrice: toQuantity(price) },
      ...made[index]!.receipt,
    })),
    native: evmFamily.native,
    coinContract,
    internal: { transfers: made.map(({ internal = [] }) => internal) },
  })
}

describe.each(Object.entries(networks))('blocks of %s', (_, kinds) => {
  it('have records that add up to the change of every balance', () => {
    const one = fc.tuple(fc.nat(kinds.length - 1), numbers)
    fc.assert(
      fc.property(fc.array(one, { minLength: 1, maxLength: 8 }), (drawn) => {
        const ledger = createLedger()
        const made = drawn.map(([kind, given]) => kinds[kind]!(given, ledger))
        const block = blockOf(made)
        for (const account of accounts)
          expect([account, sumOf(block, account)]).toEqual([
            account,
            ledger.changes.get(account) ?? 0n,
          ])
      }),
      { numRuns: 200 },
    )
  })
})

it('a state sync of Polygon before Madhugiri is known by its hash', () => {
  const ledger = createLedger()
  const [from, to, third] = accounts as [string, string, string]
  const given = { from, to, third, a: 5n, b: 6n, failed: false }
  const made = [pay('0x2')(given, ledger), stateSync('0x0')(given, ledger)]
  const { block } = stubBlock(made.map(({ logs = [] }) => ({ logs })))
  const synced = blockOf(made, [undefined, stateSyncHash(block)])
  for (const account of accounts)
    expect(sumOf(synced, account)).toBe(ledger.changes.get(account) ?? 0n)
  // With any other hash it is a transaction like others.
  expect(sumOf(blockOf(made), third)).toBe(6n)
})

it('logs of a contract that the operator did not name move no coin', () => {
  const [from, to, third] = accounts as [string, string, string]
  const given = { from, to, third, a: 5n, b: 6n, failed: false }
  const made = [celoToken(given, createLedger())]
  expect(sumOf(blockOf(made), third)).toBe(11n)
  expect(sumOf(blockOf(made, [], addressOf(0xdddd)), third)).toBe(6n)
})

describe('a state sync', () => {
  const { block, receipts, number } = stubBlock([{ value: 5n }])
  const ledger = createLedger()
  const [from, to, third] = accounts as [string, string, string]
  const { transaction, logs } = stateSync('0x0')(
    { from, to, third, a: 5n, b: 6n, failed: false },
    ledger,
  )
  const made = (hash: string, type = '0x0') => ({
    block: {
      ...block,
      transactions: [
        ...block.transactions,
        { ...block.transactions[0]!, r: '0x0', s: '0x0', ...transaction, type, hash },
      ],
    },
    receipts: [...receipts, { ...receipts[0]!, type, transactionHash: hash, logs: logs! }],
  })
  const rulesOf = (...types: number[]) => ({
    proof: 'root' as const,
    unproven_types: new Set(types),
  })
  const accepts = (given: ReturnType<typeof made>, rules: ReturnType<typeof rulesOf>) => {
    const read = readBlock(given.block, { number, rules })
    return read && provesReceipts(read, given.receipts, rules)
  }

  it('is taken only where the operator accepts its type, with logs that are in no bloom', () => {
    const derived = made(stateSyncHash(block))
    expect(accepts(derived, rulesOf())).toBeUndefined()
    expect(whyRefused(derived.block, rulesOf())).toMatch(/list it in `unproven_types`/)
    expect(accepts(derived, rulesOf(0x7f))).toBe(true)
  })

  it('cannot be appended under another hash, nor since Madhugiri with logs that are not in the bloom', () => {
    expect(accepts(made(wordOf(77)), rulesOf(0x7f))).toBeUndefined()
    expect(accepts(made(wordOf(77), '0x7f'), rulesOf(0x7f))).toBe(false)
  })
})
