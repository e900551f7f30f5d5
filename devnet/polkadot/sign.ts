import { createPrivateKey, createPublicKey, hash, sign as signWith } from 'node:crypto'
import { compact, fromHex, hash256, uint, withLength } from './bytes.ts'
import type { Code } from './code.ts'

/** A key that signs extrinsics. */
export type Signer = {
  account: Uint8Array
  /** The kind of its signatures: 0 ed25519, 1 sr25519, 2 ecdsa. */
  kind: 0 | 1 | 2
  sign(message: Uint8Array): Uint8Array
}

const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** An ed25519 key from its 32-byte seed. The machine signs and checks these itself, quickly. */
export function createSigner(seed: Uint8Array): Signer {
  const der = Buffer.concat([pkcs8, seed])
  const key = createPrivateKey({ format: 'der', type: 'pkcs8', key: der })
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' })
  return {
    account: Uint8Array.from(spki.subarray(-32)),
    kind: 0,
    sign: (message) => signWith(null, message, key),
  }
}

/** The seed of the account with that number on a chain with that seed. */
export const seedOf = (seed: number, number: number): Buffer =>
  hash('sha256', `portolan polkadot devnet ${seed} account ${number}`, 'buffer')

/** What a signature covers besides the call. */
export type Signing = { signer: Signer; nonce: number; genesis: string; tip?: bigint }

type Added = { extra: Uint8Array; signed: Uint8Array }

const none = { extra: new Uint8Array(), signed: new Uint8Array() }
const only = (signed: Uint8Array) => ({ ...none, signed })

/** What each extension adds to the extrinsic, and what it adds to the signed message only. */
const table: Readonly<Record<string, (code: Code, signing: Signing) => Added>> = {
  CheckSpecVersion: ({ version }) => only(uint(version.specVersion, 4)),
  CheckTxVersion: ({ version }) => only(uint(version.transactionVersion, 4)),
  CheckGenesis: (_, { genesis }) => only(fromHex(genesis)),
  // Valid for ever.
  CheckMortality: (_, { genesis }) => ({ extra: Uint8Array.of(0), signed: fromHex(genesis) }),
  CheckNonce: (_, { nonce }) => ({ ...none, extra: compact(nonce) }),
  // Without a hash of the metadata: the mode, and no hash.
  CheckMetadataHash: () => ({ extra: Uint8Array.of(0), signed: Uint8Array.of(0) }),
  ChargeTransactionPayment: (_, { tip = 0n }) => ({ ...none, extra: compact(Number(tip)) }),
  // The tip, and no other asset to pay with.
  ChargeAssetTxPayment: (_, { tip = 0n }) => ({
    ...none,
    extra: Buffer.concat([compact(Number(tip)), Uint8Array.of(0)]),
  }),
}

/** The extensions that add something here; all others of a runtime must be empty. */
export const signedExtensions: readonly string[] = Object.keys(table)

/** A signed extrinsic of a call. */
export function signCall(code: Code, call: Uint8Array, signing: Signing): Buffer {
  const { signer } = signing
  const parts = code.extensions.map((name) => table[name]?.(code, signing) ?? none)
  const extra = Buffer.concat(parts.map((part) => part.extra))
  const message = Buffer.concat([call, extra, ...parts.map((part) => part.signed)])
  const signature = signer.sign(message.length > 256 ? hash256(message) : message)
  const isSigned = 0x84
  return withLength(
    Buffer.concat([
      Uint8Array.of(isSigned, 0),
      signer.account,
      Uint8Array.of(signer.kind),
      signature,
      extra,
      call,
    ]),
  )
}
