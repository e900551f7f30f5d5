import { sql } from 'kysely'
import type { Anvil } from '../../devnet/anvil/anvil.ts'
import { encodeCall } from '../../src/chains/evm/codec/abi.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { listAll } from '../helpers/tracked-harness.ts'
import { waitFor } from '../helpers/wait-for.ts'
import type { Caller, Outcome } from '../helpers/wallets.ts'
import { type createReference, nativeAsset, type Tracking } from './evm-reference.ts'
import { nativeSumOf } from './record-sums.ts'

/** A wallet of a world, with the webhook of its organization. */
export type WorldWallet = {
  caller: Caller
  wallet_id: string
  tracking: Tracking
  webhook: { webhook_id: string; confirmation: number }
}

/** What the comparisons of a world need. */
export type CompareContext = {
  db: Db
  anvil: Anvil
  reference: ReturnType<typeof createReference>
  /** The first block that is tracked. */
  since: number
  /** Tokens that change balances without an event: they are right once they were compared. */
  silent: ReadonlySet<string>
  /** Tokens whose balance cannot be read. */
  unreadable: ReadonlySet<string>
  /** Whether balances are compared with the chain all the time, and those are found that no event has named. */
  isReconciled: boolean
}

/** What was compared. */
export type Compared = { transfers: number; balances: number; sums: number; notifications: number }

// What is due at the head is read and sent a moment after it.
const shortWait = { timeoutMs: 60_000, everyMs: 100 }

/** Compares all that a wallet shows and was notified of with the chain; throws what differs. */
export const compareWallet = async (
  setup: CompareContext,
  wallet: WorldWallet,
  { withBalances }: { withBalances: boolean },
): Promise<Compared> => {
  const { reference, since } = setup
  const { caller, wallet_id, tracking } = wallet
  const { transfers, touched, confirmed } = await reference.expected(since, tracking)
  const records = await listAll(caller, { wallet_id, page_size: 100 })
  const listed = records.map(lineOf).sort()
  const missing = transfers.filter((line) => !listed.includes(line))
  const extra = listed.filter((line) => !transfers.includes(line))
  if (missing.length + extra.length > 0 || listed.length !== transfers.length)
    throw new Error(JSON.stringify({ missing, extra, count: [transfers.length, listed.length] }))
  const head = await reference.head()
  for (const address of tracking.addresses) await compareSum(setup, caller, address, head)
  const notifications = await settles(() => compareNotifications(setup, wallet, records, head))
  const balances = withBalances
    ? await settles(() => compareBalances(setup, wallet, { touched, confirmed }))
    : 0
  return { transfers: listed.length, balances, sums: tracking.addresses.size, notifications }
}

/** Repeats a comparison until nothing differs. */
const settles = async (compare: () => Promise<number>): Promise<number> => {
  let counted = 0
  let difference: unknown
  const isSame = async (): Promise<boolean> => {
    try {
      counted = await compare()
      return true
    } catch (error) {
      difference = error
      return false
    }
  }
  await waitFor('no difference', isSame, shortWait).catch(() => {
    throw difference
  })
  return counted
}

/** What the records of an address add up to, fees once, is what its balance has changed by. */
const compareSum = async (
  { anvil, since }: CompareContext,
  caller: Caller,
  address: string,
  head: number,
): Promise<void> => {
  const records = await listAll(caller, { address, page_size: 100 })
  const ids = new Set(records.map((one) => `${one.transfer_id} ${one.direction}`))
  if (ids.size !== records.length) throw new Error('two transfers have one id')
  const sum = nativeSumOf(records)
  const change = (await coinAt(anvil, address, head)) - (await coinAt(anvil, address, since - 1))
  if (sum !== change) throw new Error(`the records of ${address} say ${sum}, the chain ${change}`)
}

/**
 * The last notification of each transfer says what the list says; of what is not in the list, or lacks
 * the confirmations of the webhook now, that it left the chain.
 */
const compareNotifications = async (
  { db }: CompareContext,
  { wallet_id, webhook }: WorldWallet,
  records: readonly Outcome[],
  head: number,
): Promise<number> => {
  const { rows } = await sql<{ sequence: number; data: { transfers?: Outcome[] } }>`
    select sequence, data from delivery
    where webhook_id = ${webhook.webhook_id} and sequence is not null order by sequence`.execute(db)
  const last = new Map<string, string>()
  for (const [at, { sequence, data }] of rows.entries()) {
    if (Number(sequence) !== at + 1) throw new Error(`notification ${at + 1} is ${sequence}`)
    for (const record of data.transfers ?? [])
      if (record.wallet_id === wallet_id) last.set(keyOf(record), lineOf(record))
  }
  for (const record of records) {
    const isDue = head - Number(record.block_number) + 1 >= webhook.confirmation
    const said = last.get(keyOf(record))
    if (isDue && said !== lineOf(record))
      throw new Error(`listed ${lineOf(record)}, notified last ${said}`)
    if (isDue) last.delete(keyOf(record))
  }
  for (const [id, line] of last)
    if (!line.includes('TRANSFER_STATE_REORGED'))
      throw new Error(`transfer ${id} is not on the chain, notified last ${line}`)
  return rows.length
}

const keyOf = ({ transfer_id, direction }: Outcome): string => `${transfer_id} ${direction}`

const compareBalances = async (
  setup: CompareContext,
  { caller, wallet_id, tracking }: WorldWallet,
  { touched, confirmed }: { touched: Set<string>; confirmed: number },
): Promise<number> => {
  const listed = new Map<string, { balance: string; is_unreadable: boolean }>()
  for (const asset_type of ['C', 'ERC20', 'ERC721', 'ERC1155'].map((one) => `ASSET_TYPE_${one}`)) {
    const { assets } = await caller.call('ListAssets', { wallet_id, asset_type, page_size: 100 })
    for (const asset of assets)
      listed.set(`${asset.address}/${assetOf(asset, asset.asset_metadata)}`, asset)
  }
  for (const pair of touched) if (!listed.has(pair)) throw new Error(`no balance of ${pair}`)
  if (setup.isReconciled)
    for (const pair of await findHeld(setup, tracking, confirmed))
      if (!listed.has(pair)) throw new Error(`no balance of ${pair}, which no event has named`)
  const check = async ([pair, { balance, is_unreadable }]: [string, Outcome]): Promise<void> => {
    const contract = pair.split('/')[2] ?? ''
    if (is_unreadable !== setup.unreadable.has(contract))
      throw new Error(`${pair} is ${is_unreadable ? '' : 'not '}unreadable`)
    if (is_unreadable) return
    const real = await balanceAt(setup.anvil, pair, confirmed)
    if (real !== BigInt(balance))
      throw new Error(`${pair} is ${balance}, on the chain ${real} at ${confirmed}`)
  }
  await Promise.all([...listed].map(check))
  return listed.size
}

/** The coin and tokens that addresses have, whether or not something named them. */
const findHeld = async (
  { anvil, unreadable }: CompareContext,
  { addresses, contracts, collections }: Tracking,
  confirmed: number,
): Promise<string[]> => {
  const fungible = [...contracts].filter(
    (contract) => !unreadable.has(contract) && !collections.has(contract),
  )
  const assets = [nativeAsset, ...fungible.map((contract) => `ASSET_TYPE_ERC20/${contract}/0`)]
  const pairs = [...addresses].flatMap((address) => assets.map((asset) => `${address}/${asset}`))
  const held = await Promise.all(pairs.map((pair) => balanceAt(anvil, pair, confirmed)))
  return pairs.filter((_, at) => held[at]! > 0n)
}

/** Whether all that the addresses of some wallets had at the head, with its confirmations, is shown. */
export const isAllShown = async (
  setup: CompareContext,
  wallets: readonly WorldWallet[],
): Promise<boolean> => {
  const head = await setup.reference.head()
  for (const { caller, wallet_id, tracking } of wallets) {
    const held = await findHeld(setup, tracking, head - tracking.confirmation + 1)
    const shown = new Set<string>()
    for (const asset_type of [nativeAsset, 'ASSET_TYPE_ERC20']) {
      const { assets } = await caller.call('ListAssets', { wallet_id, asset_type, page_size: 100 })
      for (const asset of assets)
        shown.add(`${asset.address}/${assetOf(asset, asset.asset_metadata)}`)
    }
    if (held.some((pair) => !shown.has(pair))) return false
  }
  return true
}

const coinAt = async (anvil: Anvil, address: string, number: number): Promise<bigint> =>
  BigInt(await anvil.call<string>('eth_getBalance', [address, `0x${number.toString(16)}`]))

const balanceAt = async (anvil: Anvil, pair: string, number: number): Promise<bigint> => {
  const [address, type, contract, id] = pair.split('/') as [string, string, string?, string?]
  if (!contract) return await coinAt(anvil, address, number)
  const block = `0x${number.toString(16)}`
  const bytes = Buffer.from(address.slice(2), 'hex')
  const data =
    type === 'ASSET_TYPE_ERC721'
      ? encodeCall('ownerOf(uint256)', BigInt(id!))
      : type === 'ASSET_TYPE_ERC1155'
        ? encodeCall('balanceOf(address,uint256)', bytes, BigInt(id!))
        : encodeCall('balanceOf(address)', bytes)
  const word = BigInt(
    await anvil.call<string>('eth_call', [{ to: contract, data }, block]).catch(() => '0x0'),
  )
  return type === 'ASSET_TYPE_ERC721' ? BigInt(word === BigInt(address)) : word
}

const assetOf = ({ asset_type }: { asset_type: string }, metadata: Outcome): string => {
  const [token] = Object.values(metadata ?? {}) as Record<string, string>[]
  return token ? `${asset_type}/${token.contract_address}/${token.token_id ?? 0}` : asset_type
}

const lineOf = (one: Outcome): string =>
  [
    one.transaction_hash,
    assetOf(one, one.transfer_metadata),
    one.from,
    one.to,
    one.value,
    one.transfer_state,
    one.block_number,
  ].join()

/**
 * How often a balance was corrected that no outage and no silent token explains. Balances are compared
 * with the chain all the time, so that a mistake in them would not show otherwise.
 */
export const countCorrections = async (
  { db, silent, unreadable }: CompareContext,
  network_id: number,
): Promise<number> => {
  const { rows } = await sql<{ contract_address: Buffer }>`
    select a.contract_address from balance_difference d join asset a on a.asset_id = d.asset_id
    where d.network_id = ${network_id}`.execute(db)
  const names = rows.map(({ contract_address }) => `0x${contract_address.toString('hex')}`)
  return names.filter((name) => !silent.has(name) && !unreadable.has(name)).length
}
