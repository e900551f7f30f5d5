import { createHash } from 'node:crypto'
import type { AssetKey } from '../../contract/records/assets.ts'
import type {
  BlockContent,
  ChainBlock,
  Family,
  Movement,
  SentTransaction,
  Touch,
  Tracked,
} from '../chain.ts'

/** One movement of a script; without an asset it is the native coin, without an end it has none. */
export type ScriptedMovement = {
  from?: Buffer
  to?: Buffer
  value: bigint
  asset?: AssetKey
  /** Moved inside of a call: only a trace shows it. */
  isInner?: boolean
}

/** One transaction of a script. */
export type ScriptedTransaction = {
  /** Given where the same transaction stands on two branches. */
  hash?: Buffer
  /** Who pays the fee. */
  payer?: Buffer
  /** Makes it a transaction of the payer as the chain counts them (C). */
  nonce?: number
  fee?: bigint
  failed?: boolean
  movements?: readonly ScriptedMovement[]
  /** Makes it one of a kind that the code does not know. */
  unknown_kind?: string
  /** Whether it cannot be decoded, at the time of asking. */
  isUndecodable?(): boolean
}

/** A block of a script with the balances after it. */
export type ScriptedBlock = ChainBlock & {
  transactions: readonly (ScriptedTransaction & { hash: Buffer })[]
  balances: ReadonlyMap<string, bigint>
  /** The same block without a trace of its calls. */
  untraced(isExpected: boolean): ChainBlock
}

/** The name of a balance. */
export const balanceKey = ({ address, asset }: { address: Buffer; asset: AssetKey }): string =>
  `${address.toString('hex')}/${asset.asset_type}/${asset.contract_address.toString('hex')}/${asset.token_id}`

const sha256 = (...parts: (string | Buffer)[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

const noParty = Buffer.alloc(0)

// As on the EVM: the place of a movement within its transaction does not depend on the block.
const placesPerTransaction = 2 ** 32

type Change = { address: Buffer; asset: AssetKey; delta: bigint }

/** The net change of every pair, in a fixed order. */
const changesOf = (
  transactions: readonly ScriptedTransaction[],
  native: AssetKey,
): Map<string, Change> => {
  const changes = new Map<string, Change>()
  const add = (address: Buffer | undefined, asset: AssetKey, delta: bigint) => {
    if (!address || address.length === 0) return
    const key = balanceKey({ address, asset })
    const sum = (changes.get(key)?.delta ?? 0n) + delta
    changes.set(key, { address, asset, delta: sum })
  }
  for (const { payer, fee = 0n, failed, movements = [] } of transactions) {
    if (fee > 0n) add(payer, native, -fee)
    for (const { from, to, value, asset = native } of failed ? [] : movements) {
      add(from, asset, -value)
      add(to, asset, value)
    }
  }
  return changes
}

const toSent = ({
  payer,
  nonce,
  failed = false,
  hash,
}: ScriptedTransaction & { hash: Buffer }): SentTransaction[] =>
  payer && nonce !== undefined ? [{ from: payer, nonce, failed, hash: () => hash }] : []

/** Makes the block that follows a parent. */
export function createScriptedBlock(options: {
  family: Family
  parent: ScriptedBlock | undefined
  transactions: readonly ScriptedTransaction[]
  time: number
  endowment: bigint
  salt: string
}): ScriptedBlock {
  const { family, parent, time, endowment, salt } = options
  const { native, service } = family
  const number = parent ? parent.number + 1 : 0
  const parent_hash = parent?.hash ?? Buffer.alloc(32)
  const transactions = options.transactions.map((transaction, at) => ({
    ...transaction,
    hash: transaction.hash ?? sha256('tx', parent_hash, salt, String(at)),
  }))
  const changes = changesOf(transactions, native)
  const balances = new Map(parent?.balances)
  for (const [key, { asset, delta }] of changes) {
    const before = balances.get(key) ?? (asset.contract_address.length === 0 ? endowment : 0n)
    balances.set(key, before + delta)
  }

  // In T each end has a transaction and a record of its own.
  const ends = service === 't' ? (['from', 'to'] as const) : ([undefined] as const)
  const movements = (): Movement[] => {
    let messages = 0
    return transactions.flatMap(
      ({ hash, payer, fee = 0n, failed, movements: moved = [] }, index) => {
        let ordinal = index * placesPerTransaction + 1
        const paying = moved.findIndex(
          ({ from, asset = native }) => payer && from?.equals(payer) && asset === native,
        )
        return moved.flatMap(({ from = noParty, to = noParty, value, asset = native }, at) => {
          const message = sha256('message', hash, String(messages++))
          return ends.map((only) => ({
            ordinal: ordinal++,
            transaction_hash: only === 'to' ? sha256(hash, 'to') : hash,
            asset,
            from,
            to,
            value,
            transaction_fee: fee,
            ...(failed && { failed }),
            ...(only && { only, transfer_hash: message }),
            detail: { nonce: String(index), pays_fee: at === paying && only !== 'to' },
          }))
        })
      },
    )
  }
  const isInner = (ordinal: number): boolean => {
    const index = Math.floor((ordinal - 1) / placesPerTransaction)
    const place = Math.floor(((ordinal - 1) % placesPerTransaction) / ends.length)
    return transactions[index]?.movements?.[place]?.isInner === true
  }
  const decode = ({ accounts, contracts }: Tracked): BlockContent => {
    const isKnown = ({ contract_address }: AssetKey) =>
      service !== 'c' || contract_address.length === 0 || contracts.has(contract_address)
    const unknown_kinds: Record<string, number> = {}
    for (const { unknown_kind: kind } of transactions)
      if (kind) unknown_kinds[kind] = (unknown_kinds[kind] ?? 0) + 1
    const broken = new Set(
      transactions.flatMap(({ isUndecodable }, index) => (isUndecodable?.() ? [index] : [])),
    )
    const isBroken = ({ ordinal }: Movement) =>
      broken.has(Math.floor((ordinal - 1) / placesPerTransaction))
    return {
      movements: movements().filter(
        (movement) =>
          isKnown(movement.asset) &&
          (accounts.has(movement.from) || accounts.has(movement.to)) &&
          !isBroken(movement),
      ),
      ...(broken.size > 0 && {
        undecoded: [...broken].map((index) => ({
          hash: transactions[index]!.hash,
          reason: 'broken',
        })),
      }),
      touched: [...changes.values()]
        .filter(({ address, asset }) => isKnown(asset) && accounts.has(address))
        .map(
          ({ address, asset, delta }): Touch =>
            family.balances === 'delta' ? { address, asset, delta } : { address, asset },
        ),
      unknown_kinds,
    }
  }

  const block: ChainBlock = {
    number,
    hash: sha256('block', parent_hash, String(number), salt, ...transactions.map((t) => t.hash)),
    parent_hash,
    time,
    ...(service === 'c' && { sent: transactions.flatMap(toSent) }),
    contracts: [...changes.values()].map(({ asset }) => asset.contract_address),
    *accounts(contracts) {
      for (const { address, asset } of changes.values())
        if (asset.contract_address.length === 0 || service !== 'c') yield address
        else if (contracts.has(asset.contract_address)) yield address
      for (const { failed, movements: moved = [] } of transactions)
        for (const { from, to } of failed ? moved : []) {
          if (from) yield from
          if (to) yield to
        }
    },
    decode,
    ...(service === 'c' && transactions.length > 0 && { isTraced: true }),
  }
  return {
    ...block,
    transactions,
    balances,
    untraced: (isExpected) => ({
      ...block,
      isTraced: false,
      ...(isExpected && { lacks: 'not traced' }),
      decode: (tracked) => {
        const content = decode(tracked)
        const movements = content.movements.filter(({ ordinal }) => !isInner(ordinal))
        const seen = movements.flatMap(({ from, to }) => [from, to])
        const touched = content.touched.filter(({ address }) =>
          [...seen, ...transactions.map(({ payer }) => payer)].some((one) => one?.equals(address)),
        )
        return { ...content, movements, touched }
      },
    }),
  }
}
