import { getPolkadotSigner } from '@polkadot-api/signer'
import { sr25519CreateDerive } from '@polkadot-labs/hdkd'
import { DEV_PHRASE, entropyToMiniSecret, mnemonicToEntropy } from '@polkadot-labs/hdkd-helpers'
import type { Signer } from './sign.ts'

const names = ['Alice', 'Bob', 'Charlie', 'Dave', 'Eve', 'Ferdie'] as const

/** The well-known accounts of development chains, whose keys every wallet and script knows. */
export const developmentSigners = (): Record<(typeof names)[number], Signer> => {
  const derive = sr25519CreateDerive(entropyToMiniSecret(mnemonicToEntropy(DEV_PHRASE)))
  const signer = (name: string): Signer => {
    const { publicKey, sign } = derive(`//${name}`)
    return { account: publicKey, kind: 1, sign }
  }
  return Object.fromEntries(names.map((name) => [name, signer(name)])) as ReturnType<
    typeof developmentSigners
  >
}

/** A key as clients of polkadot-api want it. */
export const signerForClients = ({ account, sign }: Signer) =>
  getPolkadotSigner(account, 'Sr25519', sign)
