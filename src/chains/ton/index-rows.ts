import { parseAddress } from './address.ts'
import { readHash } from './raw.ts'

/** A block as API v3 shows it, as far as it is used. */
export type IndexBlock = {
  workchain: number
  shard: bigint
  seqno: number
  root_hash: Buffer
  /** Every logical time of the block is below it, and every later one of the shard is not. */
  end_lt: bigint
}

/** The newest state of an account. */
export type IndexState = { address: Buffer; balance: bigint; last_lt: bigint }

/** What a jetton wallet holds, by the logical time of its last transaction. */
export type IndexJettonWallet = IndexState & { owner: Buffer; jetton: Buffer }

type Row = Record<string, unknown>

// Bounds on what is parsed: numbers of any length would cost time that grows with their square.
const number = /^\d{1,40}$/
const hexShard = /^[0-9a-f]{1,16}$/i

/** All rows; those of which an index knows nothing (`null`) are left out. */
const readRows = <row>(
  value: unknown,
  read: (row: Row) => row | null | undefined,
): row[] | undefined => {
  if (!Array.isArray(value)) return undefined
  const rows = value.map((row) =>
    typeof row === 'object' && row !== null ? read(row as Row) : undefined,
  )
  return rows.includes(undefined) ? undefined : rows.filter((row) => row != null)
}

const readAmount = (value: unknown): bigint | undefined =>
  typeof value === 'string' && number.test(value) ? BigInt(value) : undefined

const readAddress = (value: unknown): Buffer | undefined => {
  const parsed = typeof value === 'string' ? parseAddress(value) : undefined
  return parsed?.ok ? parsed.bytes : undefined
}

/** Reads blocks; undefined when one of them means nothing. */
export const readIndexBlocks = (value: unknown): IndexBlock[] | undefined =>
  readRows(value, ({ workchain, shard, seqno, root_hash, end_lt }) => {
    const end = readAmount(end_lt)
    const isBlock =
      Number.isSafeInteger(workchain) &&
      Number.isSafeInteger(seqno) &&
      typeof shard === 'string' &&
      hexShard.test(shard) &&
      typeof root_hash === 'string'
    if (!isBlock || end === undefined) return undefined
    return {
      workchain: Number(workchain),
      shard: BigInt(`0x${shard}`),
      seqno: Number(seqno),
      root_hash: readHash(root_hash),
      end_lt: end,
    }
  })

const readState = (row: Row): IndexState | null | undefined => {
  const { address, balance, last_transaction_lt } = row
  if (address === null || balance === null || last_transaction_lt === null) return null
  const [account, amount] = [readAddress(address), readAmount(balance)]
  const last_lt = readAmount(last_transaction_lt)
  return account && amount !== undefined && last_lt !== undefined
    ? { address: account, balance: amount, last_lt }
    : undefined
}

/** Reads states of accounts. */
export const readIndexStates = (value: unknown): IndexState[] | undefined =>
  readRows(value, readState)

/** Reads jetton wallets. */
export const readIndexJettonWallets = (value: unknown): IndexJettonWallet[] | undefined =>
  readRows(value, (row) => {
    const state = readState(row)
    if (state === null) return null
    const [owner, jetton] = [readAddress(row.owner), readAddress(row.jetton)]
    if (state && owner && jetton) return { ...state, owner, jetton }
    // What a contract says of itself may be anything, as a negative balance: its row is left out, and the index is not to blame.
    return readAddress(row.address) ? null : undefined
  })
