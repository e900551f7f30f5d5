// Certificates, contents and effects of mainnet, as recorded.
import { bcs } from '@mysten/sui/bcs'
import { describe, expect, it } from 'vitest'
import {
  changesOf,
  coinKey,
  type ParsedEffects,
  parseEffects,
} from '../../../src/chains/sui/amounts.ts'
import { createCommittees, readBitmap } from '../../../src/chains/sui/committee.ts'
import { digestOf, readContents, readSummary } from '../../../src/chains/sui/summary.ts'
import { readCheckpoint, readRecorded } from './recorded.ts'

const signature = bcs.struct('AuthorityQuorumSignInfo', {
  epoch: bcs.u64(),
  signature: bcs.bytes(48),
  signers: bcs.byteVector(),
})

/** The summary and its certificate, after one byte. The certificate has 48 bytes and a bitmap. */
const readCertified = (name: string, summaryLength: number) => {
  const bytes = readRecorded(name)
  const summary = bytes.subarray(1, 1 + summaryLength)
  const info = signature.parse(bytes.subarray(1 + summaryLength))
  return {
    summary,
    certificate: {
      epoch: Number(info.epoch),
      summary,
      signature: Uint8Array.from(info.signature),
      signers: Uint8Array.from(info.signers),
    },
  }
}
const last188 = readCertified('mainnet_15918264.summary', 11_203)
const last189 = readCertified('mainnet_16005062.summary', 11_203)
const committee189 = createCommittees()(189, readSummary(last188.summary).nextCommittee!)

describe('a certificate of mainnet', () => {
  it('is accepted by the committee that the last checkpoint of the epoch before names', () => {
    expect(readSummary(last188.summary)).toMatchObject({ epoch: 188, number: 15_918_264 })
    expect(readBitmap(last189.certificate.signers)).toHaveLength(61)
    expect(committee189.refusal(last189.certificate)).toBeUndefined()
  })

  it('is refused when anything of it differs', () => {
    const { certificate } = last189
    const flip = (bytes: Uint8Array, at: number) => {
      const copy = Uint8Array.from(bytes)
      copy[at]! ^= 1
      return copy
    }
    const refusal = (more: object) => committee189.refusal({ ...certificate, ...more })
    expect(refusal({ summary: flip(certificate.summary, 20) })).toBe(
      'the signature is not of its signers',
    )
    expect(refusal({ signature: flip(certificate.signature, 40) })).toMatch(/signature/)
    expect(refusal({ epoch: 190 })).toBe('signed in epoch 190, not 189')
    expect(refusal({ signers: Uint8Array.of(1, 2, 3) })).toMatch(/bitmap/)
    // Six validators with valid places, which is no quorum.
    const six = Buffer.from(certificate.signers.subarray(0, 28))
    six.writeUInt16LE(5, 10)
    expect(refusal({ signers: six })).toMatch(/^signed by \d+ of 10000, which is no quorum$/)
    const strangers = Buffer.from(certificate.signers)
    strangers.writeUInt16LE(500, strangers.length - 2)
    expect(refusal({ signers: strangers })).toBe('a signer is not in the committee')
    const other = createCommittees()(189, committee189.members.toReversed())
    expect(other.refusal(certificate)).toBeDefined()
  })
})

/** The effects of version 1 of successful transactions, with their places in the checkpoint. */
function recordedEffects(bytes: Buffer, contents: Uint8Array) {
  const wanted = new Map(readContents(contents).map((one, index) => [one.effects, index]))
  const found: { index: number; parsed: NonNullable<ParsedEffects['V1']> }[] = []
  // Effects stand between transactions and objects: version 1, status, then the epoch.
  for (let at = 0; at < bytes.length - 10; at++) {
    if (bytes[at] !== 0 || bytes[at + 1] !== 0 || bytes.readBigUInt64LE(at + 2) !== 246n) continue
    const parsed = parseEffects(bytes.subarray(at))
    if (!parsed?.V1) continue
    const written = bcs.TransactionEffects.serialize(parsed).toBytes()
    const index = wanted.get(digestOf('TransactionEffects', written))
    if (index !== undefined) found.push({ index, parsed: parsed.V1 })
  }
  return found
}

describe('a checkpoint of mainnet', () => {
  const bytes = readRecorded('mainnet_20958462.chk')
  const { summary, certificate } = readCertified('mainnet_20958462.chk', 134)
  const contents = bytes.subarray(1 + 134 + 8 + 48 + 2 + certificate.signers.length)
  const recorded = recordedEffects(bytes, contents)

  it('has the digest of its summary, which commits to its transactions', () => {
    const { digest, transactions } = readCheckpoint()
    expect(digestOf('CheckpointSummary', summary)).toBe(digest)
    const listed = readContents(contents)
    expect(listed.map(({ transaction }) => transaction)).toEqual(
      transactions.map((transaction) => transaction.digest),
    )
  })

  it('has effects whose digests are those of its contents, with the status and gas that a node reports', () => {
    const { transactions } = readCheckpoint()
    for (const { index, parsed } of recorded) {
      const { gasUsed, status } = transactions[index]!.effects!
      expect(status?.success).toBe(true)
      expect(parsed.gasUsed.computationCost).toBe(String(gasUsed!.computationCost))
      expect(parsed.gasUsed.storageRebate).toBe(String(gasUsed!.storageRebate))
    }
    const succeeded = transactions.filter(({ effects }) => effects?.status?.success !== false)
    expect(recorded).toHaveLength(succeeded.length)
  })

  it('has coins whose digests are those of the effects, and whose balances differ by the balance changes', () => {
    const { transactions } = readCheckpoint()
    let coins = 0
    for (const { index, parsed } of recorded) {
      const objects = new Map<string, Uint8Array>()
      const read = (id: string, version: string, owner: string | undefined) => {
        const coin = coinAt(bytes, id, BigInt(version))
        if (!coin) return []
        objects.set(coin.digest, coin.bytes)
        // Coins of objects are no balance of an address.
        if (coin.isOfObject) return []
        return [{ id, version: BigInt(version), digest: coin.digest, owner: owner ?? coin.owner }]
      }
      const before = parsed.modifiedAtVersions.flatMap(([id, version]) =>
        read(id, version, undefined),
      )
      const written = [...parsed.created, ...parsed.mutated, ...parsed.unwrapped]
      const after = written.flatMap(([{ objectId, version, digest }, owner]) => {
        const found = read(objectId, version, owner.AddressOwner ?? owner.ObjectOwner)
        for (const one of found) expect(one.digest).toBe(digest)
        return found
      })
      coins += before.length + after.length
      const changes = changesOf({ before, after, funds: [] }, (digest) => objects.get(digest))
      const { balanceChanges } = transactions[index]!
      expect(changes).toEqual(
        new Map(
          balanceChanges.map(({ address, coinType, amount }) => [
            coinKey(address!, coinType!),
            BigInt(amount!),
          ]),
        ),
      )
    }
    expect(coins).toBeGreaterThan(200)
  })
})

/** The coin with this id and version: its contents are 40 bytes that begin with the id. */
function coinAt(all: Buffer, id: string, version: bigint) {
  const mark = Buffer.alloc(41)
  mark.writeBigUInt64LE(version)
  mark[8] = 40
  Buffer.from(id.slice(2), 'hex').copy(mark, 9)
  const at = all.indexOf(mark)
  // In front of the version: the kind of object, its type, and whether anyone may transfer it.
  for (let begin = at - 3; at >= 0 && begin > at - 400; begin--) {
    if (all[begin] !== 0 || (all[begin + 1] !== 1 && all[begin + 1] !== 3)) continue
    try {
      const object = bcs.Object.parse(all.subarray(begin))
      const bytes = bcs.Object.serialize(object).toBytes()
      if (bytes.length < at - begin + 41 || object.data.Move?.contents.length !== 40) continue
      const owner = object.owner.AddressOwner ?? object.owner.ObjectOwner
      const isOfObject = object.owner.ObjectOwner !== undefined
      if (owner) return { bytes, digest: digestOf('Object', bytes), owner, isOfObject }
    } catch {
      // Not the beginning of an object.
    }
  }
  return undefined
}

describe('a bitmap of signers', () => {
  it('is read with arrays and with runs, and refused where it is something else', () => {
    // One container with one run of 4 from 2 on.
    expect(readBitmap(Uint8Array.of(0x3b, 0x30, 0, 0, 1, 0, 0, 3, 0, 1, 0, 2, 0, 3, 0))).toEqual([
      2, 3, 4, 5,
    ])
    expect(readBitmap(Uint8Array.of())).toBeUndefined()
    expect(readBitmap(Buffer.alloc(64))).toBeUndefined()
  })
})
