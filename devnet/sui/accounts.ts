import { createHash } from 'node:crypto'
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519'
import { normalizeStructTag } from '@mysten/sui/utils'
import { SUI } from './coins.ts'

/** What is known of a coin type. */
export type CoinInfo = { decimals: number; name: string; symbol: string; description: string }

/** The keys of a seed by number: 0 is the faucet, those up to 9 have enough to pay with. */
export const keyOf = (seed: number, number: number): Ed25519Keypair =>
  Ed25519Keypair.fromSecretKey(
    createHash('sha256').update(`sui dev account ${number} of seed ${seed}`).digest(),
  )

/** A coin beside the native one that every dev chain has; account 1 holds it. */
export const devCoin = normalizeStructTag('0xde7::coral::CORAL')

/** The coin types that a dev chain knows from its first checkpoint on. */
export const devCoins: readonly (readonly [string, CoinInfo])[] = [
  [SUI, { decimals: 9, name: 'Sui', symbol: 'SUI', description: 'The native coin.' }],
  [devCoin, { decimals: 6, name: 'Coral', symbol: 'CORAL', description: 'A coin to try with.' }],
]

const funded = 10
const faucetCoins = 16
const faucetCoinBalance = 100_000_000n * 1_000_000_000n
const accountBalance = 1_000_000n * 1_000_000_000n

/** Who owns what at the beginning. */
export const genesisOf = (seed: number): { owner: string; type: string; balance: bigint }[] => {
  const faucet = keyOf(seed, 0).toSuiAddress()
  const accounts = Array.from({ length: funded - 1 }, (_, i) => keyOf(seed, i + 1).toSuiAddress())
  return [
    ...Array.from({ length: faucetCoins }, () => ({
      owner: faucet,
      type: SUI,
      balance: faucetCoinBalance,
    })),
    ...accounts.map((owner) => ({ owner, type: SUI, balance: accountBalance })),
    { owner: faucet, type: devCoin, balance: 1_000_000_000n * 1_000_000n },
    { owner: accounts[0]!, type: devCoin, balance: 1_000_000n * 1_000_000n },
  ]
}
