import { keyPairFromSeed } from '@ton/crypto'
import { WalletContractV4 } from '@ton/ton'
import { genesisState } from './account.ts'
import { digest } from './block.ts'
import { genesisTime } from './chain.ts'

/** An account with coin that scripts sign for: a wallet of version 4, which every library knows. */
export type WalletAccount = { address: string; key: string; genesis: [string, string] }

const wealth = 1_000_000n * 1_000_000_000n

/** The account of a seed; its key is the 32 bytes that a key pair is made from. */
export function createWalletAccount(seed: number): WalletAccount {
  const secret = digest(`wallet ${seed}`)
  const { publicKey } = keyPairFromSeed(secret)
  const { address, init } = WalletContractV4.create({ workchain: 0, publicKey })
  const raw = address.toRawString()
  const state = genesisState(address, { init, balance: wealth, utime: genesisTime })
  return { address: raw, key: secret.toString('hex'), genesis: [raw, state] }
}
