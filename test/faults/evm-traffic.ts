import { largeTrace, setInLedger } from '../chains/evm/hostile-contracts.ts'
import { contracts, encode } from '../chains/evm/token-contracts.ts'
import { created, type Effect, nativeAsset } from './evm-reference.ts'

/** The contracts of a world. */
export type WorldContracts = {
  coin: string
  item: string
  multi: string
  relay: string
  /** Fails whatever it is asked, but makes Transfer events. */
  loud: string
  /** Changes balances without an event. */
  ledger: string
}

/** A transaction, and what it moves if it succeeds. */
export type Planned = {
  transaction: { from: string; to?: string; data?: string; value: bigint }
  effects: Effect[]
}

// More than the trackers of a world take of one reply.
const oversizedCalls = 12

const zeroAddress = `0x${'0'.repeat(40)}`

/** Makes transactions of all kinds between some accounts, many of which fail. */
export const createTraffic = (
  { coin, item, multi, relay, loud, ledger }: WorldContracts,
  accounts: readonly string[],
  pick: (count: number) => number,
  /** How many transactions may be made to be untraceable: each takes a node some time. */
  { oversized }: { oversized: number },
): (() => Planned) => {
  let oversizedLeft = oversized
  let nextItem = 1n
  const asset20 = `ASSET_TYPE_ERC20/${coin}/0`
  const asset721 = (id: bigint) => `ASSET_TYPE_ERC721/${item}/${id}`
  const asset1155 = (id: bigint) => `ASSET_TYPE_ERC1155/${multi}/${id}`
  return () => {
    const from = accounts[pick(6)]!
    const to = accounts[pick(6)]!
    const value = BigInt(pick(500))
    const id = BigInt(1 + pick(3))
    const owned = BigInt(1 + pick(Number(nextItem)))
    const native = (one: string): Effect => ({ asset: nativeAsset, from, to: one, value })
    const call = (target: string, data: string, effects: Effect[], paid = 0n): Planned => ({
      transaction: { from, to: target, data, value: paid },
      effects,
    })
    const kinds: (() => Planned)[] = [
      () => ({ transaction: { from, to, value }, effects: [native(to)] }),
      () =>
        call(coin, encode('mint', to, value), [{ asset: asset20, from: zeroAddress, to, value }]),
      // Often more than there is: then it fails.
      () => call(coin, encode('transfer', to, value), [{ asset: asset20, from, to, value }]),
      () => {
        const minted = nextItem++
        const asset = asset721(minted)
        return call(item, encode('mint', to, minted), [{ asset, from: zeroAddress, to, value: 1n }])
      },
      () =>
        call(item, encode('transferFrom', from, to, owned), [
          { asset: asset721(owned), from, to, value: 1n },
        ]),
      () =>
        call(multi, encode('mint', to, id, value), [
          { asset: asset1155(id), from: zeroAddress, to, value },
        ]),
      () =>
        call(multi, encode('transferMany', to, [1n, 2n], [value / 9n, id]), [
          { asset: asset1155(1n), from, to, value: value / 9n },
          { asset: asset1155(2n), from, to, value: id },
        ]),
      // The same item twice, in equal amounts: two transfers that differ in their ids only.
      () => {
        const part = { asset: asset1155(id), from, to, value: value / 9n }
        const data = encode('transferMany', to, [id, id], [part.value, part.value])
        return call(multi, data, [part, part])
      },
      // Fees without a payment: to itself, and a new contract.
      () => ({ transaction: { from, to: from, value: 0n }, effects: [] }),
      () => ({ transaction: { from, data: contracts.Relay.bytecode, value: 0n }, effects: [] }),
      () => {
        const onward = { asset: nativeAsset, from: relay, to, value }
        return call(relay, encode('pass', to), [native(relay), onward], value)
      },
      () => call(relay, encode('passInVain', to), [native(relay)], value),
      () => call(relay, encode('fail'), [native(relay)], value),
      // A token that cannot be asked, and one that changes a balance and says nothing.
      () =>
        call(loud, setInLedger(to, value), [
          { asset: `ASSET_TYPE_ERC20/${loud}/0`, from, to, value },
        ]),
      () => call(ledger, setInLedger(to, value), []),
    ]
    if (oversizedLeft > 0 && pick(12) === 0) {
      oversizedLeft--
      const onward = { asset: nativeAsset, from: created, to, value }
      const transaction = { from, data: largeTrace(to, oversizedCalls), value }
      return { transaction, effects: [native(created), onward] }
    }
    return kinds[pick(kinds.length)]!()
  }
}
