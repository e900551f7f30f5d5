import type { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519'
import type { Transaction } from '@mysten/sui/transactions'
import { devCoin } from '../../devnet/sui/accounts.ts'
import type { SuiNode } from '../../devnet/sui/node.ts'

const sui = '0x2::sui::SUI'

/** Sends random transactions of every kind between the funded accounts of a dev node. */
export const createTraffic = (
  node: SuiNode,
  { random, receivers }: { random: () => number; receivers: readonly string[] },
) => {
  const pick = (count: number) => Math.floor(random() * count)
  const someone = () => receivers[pick(receivers.length)]!
  const mint = (transaction: Transaction, type: string, amount: number) =>
    transaction.moveCall({
      target: '0xde7::treasury::mint',
      typeArguments: [type],
      arguments: [transaction.pure.u64(amount)],
    })
  type OwnCoin = ReturnType<typeof node.ledger.live.coinsOf>[number]
  const ownCoins = (from: Ed25519Keypair, type: string): OwnCoin[] =>
    node.ledger.live.coinsOf(from.toSuiAddress(), type).slice(0, 5)
  const refTo = (transaction: Transaction, { id, version, digest }: OwnCoin) =>
    transaction.objectRef({ objectId: id, version: String(version), digest })
  const kinds: ((transaction: Transaction, from: Ed25519Keypair) => void)[] = [
    // A payment, or several in one.
    (transaction) => {
      const amounts = Array.from({ length: 1 + pick(4) }, () => 1 + pick(1_000_000))
      const coins = transaction.splitCoins(transaction.gas, amounts)
      for (const index of amounts.keys()) transaction.transferObjects([coins[index]!], someone())
    },
    // Into an address balance.
    (transaction) => {
      const [coin] = transaction.splitCoins(transaction.gas, [1 + pick(1_000)])
      transaction.moveCall({
        target: '0x2::coin::send_funds',
        typeArguments: [sui],
        arguments: [coin!, transaction.pure.address(someone())],
      })
    },
    // Another coin, from nowhere.
    (transaction) => {
      const [coin] = mint(transaction, devCoin, 1 + pick(1_000))
      transaction.transferObjects([coin!], someone())
    },
    // Coins of another kind that the sender has: a part is paid, put into an address balance or burned.
    (transaction, from) => {
      const coins = ownCoins(from, devCoin)
      if (coins.length === 0) return void transaction.moveCall({ target: '0xde7::calls::nothing' })
      const [first, ...others] = coins.map((coin) => refTo(transaction, coin))
      if (others.length > 0 && chanceOf(0.3)) transaction.mergeCoins(first!, others)
      // Now and then more than there is: then it fails.
      const most = Number(coins[0]!.balance)
      const amount = chanceOf(0.1) ? most + 1_000_000 : 1 + pick(Math.max(1, most))
      const [part] = transaction.splitCoins(first!, [amount])
      const end = pick(4)
      if (end === 0)
        transaction.moveCall({
          target: '0x2::coin::send_funds',
          typeArguments: [devCoin],
          arguments: [part!, transaction.pure.address(someone())],
        })
      else if (end === 1)
        transaction.moveCall({
          target: '0xde7::treasury::burn',
          typeArguments: [devCoin],
          arguments: [part!],
        })
      else transaction.transferObjects([part!], someone())
    },
    // A whole coin of another kind.
    (transaction, from) => {
      const [coin] = ownCoins(from, devCoin)
      if (!coin) return void transaction.moveCall({ target: '0xde7::calls::nothing' })
      transaction.transferObjects([refTo(transaction, coin)], someone())
    },
    // A swap.
    (transaction, from) => {
      const [coin] = transaction.splitCoins(transaction.gas, [1 + pick(1_000)])
      const [got] = transaction.moveCall({
        target: '0xde7::pool::swap',
        typeArguments: [sui, devCoin],
        arguments: [coin!],
      })
      transaction.transferObjects([got!], chanceOf(0.5) ? from.toSuiAddress() : someone())
    },
    // A call that moves nothing, and one that fails.
    (transaction) => transaction.moveCall({ target: '0xde7::calls::nothing' }),
    (transaction) =>
      transaction.moveCall({ target: '0xde7::calls::fail', arguments: [transaction.pure.u64(7)] }),
    (transaction) => {
      const [coin] = transaction.splitCoins(transaction.gas, [2n ** 63n])
      transaction.transferObjects([coin!], someone())
    },
    // Many small coins of its own become one: more storage comes back than the gas costs.
    (transaction, from) => {
      const coins = node.ledger.live
        .coinsOf(from.toSuiAddress())
        .filter(({ type, balance }) => type !== devCoin && balance < 10_000_000n)
        .slice(0, 20)
      if (coins.length === 0) return void transaction.moveCall({ target: '0xde7::calls::nothing' })
      transaction.mergeCoins(
        transaction.gas,
        coins.map((coin) => refTo(transaction, coin)),
      )
    },
  ]
  const chanceOf = (share: number) => random() < share
  return {
    pick,
    chance: chanceOf,
    /** Runs one; sponsored now and then. */
    send: async (): Promise<string> => {
      const from = node.key(1 + pick(9))
      const kind = kinds[pick(kinds.length)]!
      const sponsor = chanceOf(0.15) ? node.key(1 + pick(9)) : undefined
      return await node.run(from, (transaction) => void kind(transaction, from), {
        ...(sponsor && sponsor !== from && { sponsor }),
      })
    },
  }
}
