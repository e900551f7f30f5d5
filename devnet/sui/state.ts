import type { Coin } from './coins.ts'

/** What a transaction changes: coins (null is gone) and address balances. */
export type Writes = {
  coins: readonly (readonly [string, Coin | null])[]
  funds: readonly (readonly [owner: string, type: string, amount: bigint])[]
}

/** Everything that an address owns. */
export type State = {
  coin(id: string): Coin | undefined
  /** A coin as a transaction left it, for as long as old versions are kept. */
  version(id: string, version: bigint): Coin | undefined
  coinsOf(owner: string, type?: string): Coin[]
  fundsOf(owner: string, type: string): bigint
  typesOf(owner: string): Set<string>
  coins(): Iterable<Coin>
  funds(): Iterable<[string, string, bigint]>
  apply(writes: Writes): void
}

const mostVersions = 20_000

/** Coins and address balances, indexed by owner. */
export function createState(): State {
  const coins = new Map<string, Coin>()
  const owned = new Map<string, Map<string, Coin>>()
  const funds = new Map<string, Map<string, bigint>>()
  const versions = new Map<string, Coin>()

  const drop = (coin: Coin | undefined): void => {
    if (!coin) return
    coins.delete(coin.id)
    const own = owned.get(coin.owner)
    own?.delete(coin.id)
    if (own?.size === 0) owned.delete(coin.owner)
  }
  const put = (coin: Coin): void => {
    coins.set(coin.id, coin)
    versions.set(`${coin.id} ${coin.version}`, coin)
    const [oldest] = versions.keys()
    if (versions.size > mostVersions && oldest !== undefined) versions.delete(oldest)
    const own = owned.get(coin.owner) ?? new Map<string, Coin>()
    owned.set(coin.owner, own.set(coin.id, coin))
  }

  return {
    coin: (id) => coins.get(id),
    version: (id, version) => versions.get(`${id} ${version}`),
    coinsOf: (owner, type) =>
      [...(owned.get(owner)?.values() ?? [])].filter((coin) => !type || coin.type === type),
    fundsOf: (owner, type) => funds.get(owner)?.get(type) ?? 0n,
    typesOf: (owner) =>
      new Set([
        ...[...(owned.get(owner)?.values() ?? [])].map(({ type }) => type),
        ...(funds.get(owner)?.keys() ?? []),
      ]),
    coins: () => coins.values(),
    *funds() {
      for (const [owner, types] of funds)
        for (const [type, amount] of types) yield [owner, type, amount]
    },
    apply: (writes) => {
      for (const [id, coin] of writes.coins) {
        drop(coins.get(id))
        if (coin) put(coin)
      }
      for (const [owner, type, amount] of writes.funds) {
        const types = funds.get(owner) ?? new Map<string, bigint>()
        const sum = (types.get(type) ?? 0n) + amount
        if (sum === 0n) types.delete(type)
        else types.set(type, sum)
        if (types.size === 0) funds.delete(owner)
        else funds.set(owner, types)
      }
    },
  }
}
