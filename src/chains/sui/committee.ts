// Certificates of checkpoints: an aggregated BLS signature of validators with more than two thirds of the voting power. Every check
// of the bitmap and the weights comes before the pairing, which is the expensive part.

import { Bls } from 'ox'
import type { Member } from './summary.ts'

const { G1, G2, fields, pairingBatch } = Bls.noble
const suite = { DST: 'BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_' }
/** Of 10,000: more than two thirds. */
const quorum = 6_667n
// Version 0 of a signature of Sui for a checkpoint summary.
const intent = Buffer.of(2, 0, 0)
const mostSigners = 1 << 16

type Point = ReturnType<typeof G2.ProjectivePoint.fromHex>

/** The validators of one epoch. */
export type Committee = {
  epoch: number
  members: readonly Member[]
  /** Verifies the certificate of a checkpoint; says why it is none. */
  refusal(certificate: Certificate): string | undefined
}

/** What a quorum of a committee has signed. */
export type Certificate = {
  epoch: number
  /** The BCS of the summary. */
  summary: Uint8Array
  signature: Uint8Array
  /** Who signed, as a Roaring bitmap of places in the committee. */
  signers: Uint8Array
}

/**
 * Makes committees. Keys are decompressed once, which takes longer than a signature: most validators
 * stay from one epoch to the next.
 */
export function createCommittees() {
  // Validators stay for many epochs; their number bounds the map in practice.
  const points = new Map<string, Point>()
  const pointOf = (key: Uint8Array): Point => {
    const name = Buffer.from(key).toString('hex')
    const point = points.get(name) ?? G2.ProjectivePoint.fromHex(key)
    points.set(name, point)
    return point
  }

  return (epoch: number, members: readonly Member[]): Committee => ({
    epoch,
    members,
    refusal: (certificate) => {
      if (certificate.epoch !== epoch) return `signed in epoch ${certificate.epoch}, not ${epoch}`
      const places = readBitmap(certificate.signers)
      if (!places) return 'the bitmap of the signers cannot be read'
      const signers = places.map((place) => members[place])
      if (signers.some((signer) => !signer)) return 'a signer is not in the committee'
      // Weights of a committee sum up to 10,000 (basis points).
      const power = signers.reduce((sum, signer) => sum + signer!.power, 0n)
      if (power < quorum) return `signed by ${power} of 10000, which is no quorum`
      try {
        // One pairing for all: BLS keys of the signers are added up.
        const key = signers.map((signer) => pointOf(signer!.key)).reduce((a, b) => a.add(b))
        return isSigned(key, certificate) ? undefined : 'the signature is not of its signers'
      } catch {
        return 'a key or the signature is no point of the curve'
      }
    },
  })
}

function isSigned(key: Point, { epoch, summary, signature }: Certificate): boolean {
  const ending = Buffer.alloc(8)
  ending.writeBigUInt64LE(BigInt(epoch))
  const message = G1.hashToCurve(Buffer.concat([intent, summary, ending]), suite)
  const signed = G1.ProjectivePoint.fromHex(signature)
  signed.assertValidity()
  const product = pairingBatch([
    { g1: message as typeof signed, g2: key },
    { g1: signed, g2: G2.ProjectivePoint.BASE.negate() },
  ])
  return fields.Fp12.eql(product, fields.Fp12.ONE)
}

/**
 * Reads a Roaring bitmap of small numbers in its portable form: arrays, and runs where those are shorter.
 * A committee has some hundred members, so that one container holds them.
 */
export function readBitmap(given: Uint8Array): number[] | undefined {
  const bytes = Buffer.from(given)
  try {
    const cookie = bytes.readUInt32LE(0)
    const isRuns = (cookie & 0xffff) === 12_347
    if (!isRuns && cookie !== 12_346) return undefined
    const containers = isRuns ? (cookie >>> 16) + 1 : bytes.readUInt32LE(4)
    if (containers !== 1) return undefined
    // With runs a byte says which containers have them; small bitmaps with runs have no offsets.
    const header = isRuns ? 5 : 8
    if (bytes.readUInt16LE(header) !== 0) return undefined
    const count = bytes.readUInt16LE(header + 2) + 1
    if (isRuns && (bytes[4]! & 1) === 1) return readRuns(bytes, header + 4)
    const begin = isRuns ? header + 4 : bytes.readUInt32LE(header + 4)
    return ascending(Array.from({ length: count }, (_, i) => bytes.readUInt16LE(begin + 2 * i)))
  } catch {
    return undefined
  }
}

function readRuns(bytes: Buffer, at: number): number[] | undefined {
  const places: number[] = []
  for (let run = 0; run < bytes.readUInt16LE(at); run++) {
    const first = bytes.readUInt16LE(at + 2 + 4 * run)
    const more = bytes.readUInt16LE(at + 4 + 4 * run)
    for (let place = first; place <= first + more; place++) places.push(place)
    if (places.length > mostSigners) return undefined
  }
  return ascending(places)
}

/** Undefined where one counts twice. */
const ascending = (places: number[]): number[] | undefined =>
  places.every((place, index) => index === 0 || places[index - 1]! < place) ? places : undefined
