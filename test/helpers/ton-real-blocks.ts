import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Cell, Dictionary, type DictionaryValue, loadMessage, type Slice } from '@ton/core'
import type { RawTransaction } from '../../src/chains/ton/raw.ts'

const folder = join(import.meta.dirname, '../fixtures/ton')

/** A recorded block of the production network. */
export type RealBlock = {
  cell: Cell
  /** Milliseconds. */
  time: number
  transactions: { account: string; cell: Cell }[]
}

const skipCurrencies = (slice: Slice): void => {
  slice.loadCoins()
  slice.loadMaybeRef()
}

/** The value of a dictionary whose edges carry sums of currencies. */
const augmented = <value>(parse: (slice: Slice) => value): DictionaryValue<value> => ({
  serialize: () => {
    throw new Error('is only read')
  },
  parse: (slice) => {
    skipCurrencies(slice)
    return parse(slice)
  },
})

/** Reads the bytes of a fixture. */
export const readFixture = (name: string): Buffer => readFileSync(join(folder, name))

/** Reads a recorded block, as a node would list its transactions. */
export function readRealBlock(name: string): RealBlock {
  const cell = Cell.fromBoc(readFixture(`blocks/${name}`))[0]!
  const [info, , , extra] = cell.refs
  const head = info!.beginParse()
  // Tag, version, flags, seqno and the number of its predecessor's vertical block, shard.
  head.skip(32 + 32 + 8 + 8 + 32 + 32 + 104)
  const time = head.loadUint(32) * 1_000
  const accounts = extra!.refs[2]!.beginParse()
  const transactions: RealBlock['transactions'] = []
  if (accounts.loadBit()) {
    const blocks = Dictionary.loadDirect(
      Dictionary.Keys.Buffer(32),
      augmented((slice) => {
        slice.skip(4 + 256)
        return Dictionary.loadDirect(
          Dictionary.Keys.BigUint(64),
          augmented((inner) => inner.loadRef()),
          slice,
        ).values()
      }),
      accounts.loadRef().beginParse(),
    )
    for (const [account, cells] of blocks)
      for (const one of cells) transactions.push({ account: account.toString('hex'), cell: one })
  }
  return { cell, time, transactions }
}

const party = (address: unknown) => ({
  '@type': 'accountAddress',
  account_address: address ? String(address) : '',
})

/** A transaction as the servers write it. */
export function writeRaw(account: string, cell: Cell): RawTransaction {
  const slice = cell.beginParse()
  slice.skip(4 + 256)
  const lt = slice.loadUintBig(64).toString()
  const transaction_id = { lt, hash: cell.hash().toString('base64') }
  return {
    account: `0:${account.toUpperCase()}`,
    data: cell.toBoc().toString('base64'),
    transaction_id,
    ...writeMessages(cell),
  }
}

/** What a server shows of the messages; nothing where it cannot read them. */
function writeMessages(cell: Cell): Pick<RawTransaction, 'in_msg' | 'out_msgs'> {
  try {
    const slice = cell.refs[0]!.beginParse()
    const received = slice.loadMaybeRef()
    const sent = slice.loadDict(Dictionary.Keys.Uint(15), Dictionary.Values.Cell()).values()
    const show = (message: Cell) => {
      const { info } = loadMessage(message.beginParse())
      return {
        source: party(info.type === 'external-in' ? '' : info.src),
        destination: party(info.type === 'external-out' ? '' : info.dest),
      }
    }
    return { ...(received && { in_msg: show(received) }), out_msgs: sent.map(show) }
  } catch {
    return { out_msgs: [] }
  }
}
