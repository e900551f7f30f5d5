import { createPublicKey, hash, verify } from 'node:crypto'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import {
  Blake2128,
  Blake2256,
  h64,
  Keccak256,
  Twox128,
  Twox256,
} from '@polkadot-api/substrate-bindings'
import * as sr25519 from '@scure/sr25519'
import { keyText, uint } from './bytes.ts'
import { type HostContext, put, putSpan, readSpan, viewOf } from './memory.ts'

const mostRemembered = 4_096

/** The same names and accounts are hashed in every block. */
const remembering = (work: (bytes: Uint8Array) => Uint8Array) => {
  const known = new Map<string, Uint8Array>()
  return (bytes: Uint8Array): Uint8Array => {
    const key = keyText(bytes)
    let result = known.get(key)
    if (!result) {
      if (known.size >= mostRemembered) known.clear()
      result = work(Uint8Array.from(bytes))
      known.set(key, result)
    }
    return result
  }
}

const spki = Buffer.from('302a300506032b6570032100', 'hex')

const verifyEd25519 = (signature: Uint8Array, message: Uint8Array, key: Uint8Array): boolean => {
  const format = { format: 'der', type: 'spki', key: Buffer.concat([spki, key]) } as const
  return verify(null, message, createPublicKey(format), signature)
}

const orFalse = (check: () => boolean): number => {
  try {
    return check() ? 1 : 0
  } catch {
    // A key that is no point, a signature of the wrong length: not a valid signature.
    return 0
  }
}

/** The host functions by which a runtime hashes and checks signatures. */
export function createCryptoHost(context: HostContext) {
  const hashing = (work: (bytes: Uint8Array) => Uint8Array) => (data: bigint) =>
    put(context, work(readSpan(context, data)))
  const copy = (pointer: number, length: number) =>
    Uint8Array.from(viewOf(context, pointer, length))
  const verifySr25519 = (signature: number, message: bigint, key: number) =>
    orFalse(() =>
      sr25519.verify(
        Uint8Array.from(readSpan(context, message)),
        copy(signature, 64),
        copy(key, 32),
      ),
    )
  const recover = (signature: number, message: number, isCompressed: boolean) => {
    try {
      const bytes = copy(signature, 65)
      const bit = bytes[64]! >= 27 ? bytes[64]! - 27 : bytes[64]!
      const key = secp256k1.Signature.fromBytes(bytes.subarray(0, 64), 'compact')
        .addRecoveryBit(bit)
        .recoverPublicKey(copy(message, 32))
        .toBytes(isCompressed)
      const shown = isCompressed ? key : key.subarray(1)
      return putSpan(context, Buffer.concat([Uint8Array.of(0), shown]))
    } catch {
      return putSpan(context, Uint8Array.of(1, 2))
    }
  }
  return {
    ext_hashing_blake2_128_version_1: hashing(remembering(Blake2128)),
    ext_hashing_blake2_256_version_1: hashing((data) => Blake2256(Uint8Array.from(data))),
    ext_hashing_twox_64_version_1: hashing(remembering((data) => uint(h64(data), 8))),
    ext_hashing_twox_128_version_1: hashing(remembering(Twox128)),
    ext_hashing_twox_256_version_1: hashing((data) => Twox256(Uint8Array.from(data))),
    ext_hashing_keccak_256_version_1: hashing((data) => Keccak256(Uint8Array.from(data))),
    ext_hashing_sha2_256_version_1: hashing((data) => hash('sha256', data, 'buffer')),
    ext_crypto_start_batch_verify_version_1: () => {},
    ext_crypto_finish_batch_verify_version_1: () => 1,
    ext_crypto_sr25519_verify_version_1: verifySr25519,
    ext_crypto_sr25519_verify_version_2: verifySr25519,
    ext_crypto_ed25519_verify_version_1: (signature: number, message: bigint, key: number) =>
      orFalse(() => verifyEd25519(copy(signature, 64), readSpan(context, message), copy(key, 32))),
    ext_crypto_secp256k1_ecdsa_recover_version_2: (signature: number, message: number) =>
      recover(signature, message, false),
    ext_crypto_secp256k1_ecdsa_recover_compressed_version_2: (signature: number, message: number) =>
      recover(signature, message, true),
  }
}
