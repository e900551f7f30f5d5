import { bcs, TypeTagSerializer } from '@mysten/sui/bcs'
import { GrpcTypes } from '@mysten/sui/grpc'
import { normalizeStructTag, normalizeSuiAddress, toBase58, toHex } from '@mysten/sui/utils'
import { hash, u64 } from './hashing.ts'

/** The type of the native coin in its long form. */
export const SUI = normalizeStructTag('0x2::sui::SUI')

/** A coin object as it is in the ledger. */
export type Coin = {
  id: string
  version: bigint
  type: string
  owner: string
  balance: bigint
  /** The transaction that wrote it. */
  previous: string
  digest: string
}

/** What a coin object costs to store, and the part of it that comes back when it is gone. */
export const storageCost = 988_000n
export const storageRebate = 978_120n

const contentsOf = (id: string, balance: bigint): Uint8Array =>
  Buffer.concat([bcs.Address.serialize(id).toBytes(), u64(balance)])

/** The bytes of a coin object. */
const bytesOf = ({ id, version, type, owner, balance, previous }: Omit<Coin, 'digest'>) =>
  bcs.Object.serialize({
    data: {
      Move: {
        type:
          type === SUI
            ? { GasCoin: true }
            : { Coin: TypeTagSerializer.parseFromStr(type, true) as never },
        hasPublicTransfer: true,
        version,
        contents: contentsOf(id, balance),
      },
    },
    owner: { AddressOwner: owner },
    previousTransaction: previous,
    storageRebate: storageCost,
  }).toBytes()

/** A coin with the digest of its bytes. */
export const createCoin = (coin: Omit<Coin, 'digest'>): Coin => ({
  ...coin,
  digest: toBase58(hash('Object::', bytesOf(coin))),
})

/** The id of the n-th object that a transaction makes. */
export const objectIdOf = (transaction: Uint8Array, n: number): string =>
  normalizeSuiAddress(toHex(hash(Uint8Array.of(0xf1), transaction, u64(n))))

/** The Move type of a coin object. */
export const objectTypeOf = (type: string): string =>
  `${normalizeSuiAddress('0x2')}::coin::Coin<${type}>`

/** A coin as the services give it. */
export const toObject = (coin: Coin): GrpcTypes.Object =>
  GrpcTypes.Object.create({
    bcs: { name: 'Object', value: bytesOf(coin) },
    objectId: coin.id,
    version: coin.version,
    digest: coin.digest,
    owner: { kind: GrpcTypes.Owner_OwnerKind.ADDRESS, address: coin.owner },
    objectType: objectTypeOf(coin.type),
    hasPublicTransfer: true,
    contents: { name: objectTypeOf(coin.type), value: contentsOf(coin.id, coin.balance) },
    previousTransaction: coin.previous,
    storageRebate: storageCost,
    balance: coin.balance,
  })
