// The messages of lite servers that are used, as `lite_api.tl` of ton-blockchain/ton defines them. A constructor's
// number is the CRC-32 of its line; `recorded.test.ts` computes them again.
//
// Written here because no dependency has TL: `@ton/core` and `@ton/ton` read TL-B, the language of cells. The codec of `ton-lite-client`
// is made from a schema (src/schema.tl of ton-core/ton-lite-client) with the older signature set alone, without that of Simplex, and
// its lists have no bound.

import { NodeFault } from '../../nodes/fault.ts'
import { readBytes, tlBytes } from './adnl.ts'

/** The full name of a block. */
export type LiteBlockId = {
  workchain: number
  /** Unsigned. */
  shard: bigint
  seqno: number
  root_hash: Buffer
  file_hash: Buffer
}

/** Who signed a block, and what. */
export type SignatureSet = {
  signatures: { node: Buffer; signature: Buffer }[]
  /** Since Catchain 2.0: the vote that was signed. */
  vote?: { session: Buffer; slot: Buffer; candidate: Buffer }
}

/** A later block that is signed by the validators which a key block names. */
export type ForwardLink = {
  from: LiteBlockId
  to: LiteBlockId
  dest_proof: Buffer
  config_proof: Buffer
  signatures: SignatureSet
}

/** The numbers of the constructors. */
export const ids = {
  getMasterchainInfo: 0x89b5e62e,
  masterchainInfo: 0x85832881,
  getBlock: 0x6377cf0d,
  blockData: 0xa574ed6c,
  lookupBlock: 0xfac8f71e,
  blockHeader: 0x752d8219,
  getBlockProof: 0x8aea9c44,
  partialBlockProof: 0x8ed0d2c1,
  blockLinkForward: 0x520fce1c,
  signatureSetOrdinary: 0xf644a6e6,
  signatureSetSimplex: 0xac249800,
  getAccountState: 0x6b890e25,
  accountState: 0x7079c751,
  runSmcMethod: 0x5cc65dd2,
  runMethodResult: 0xa39a616b,
  error: 0xbba9e148,
} as const

const int = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32LE(value | 0)
  return bytes
}
const long = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt.asUintN(64, value))
  return bytes
}

/** Writes the name of a block. */
export const writeBlockId = ({ workchain, shard, seqno, root_hash, file_hash }: LiteBlockId) =>
  Buffer.concat([int(workchain), long(shard), int(seqno), root_hash, file_hash])

/** Reads one thing after the other. */
export function createTlReader(bytes: Buffer) {
  let at = 0
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new NodeFault('invalid', 'an answer ends too early')
    at += length
    return bytes.subarray(at - length, at)
  }
  const readInt = (): number => take(4).readInt32LE(0)
  return {
    take,
    int: readInt,
    tag: (): number => take(4).readUInt32LE(0),
    bytes: (): Buffer => {
      const found = readBytes(bytes, at)
      const head = bytes[at] === 254 ? 4 : 1
      // TL pads bytes to a multiple of four.
      at += (head + found.length + 3) & ~3
      return found
    },
    count: (most: number): number => {
      const count = readInt()
      if (count < 0 || count > most) throw new NodeFault('invalid', `a list of ${count}`)
      return count
    },
    blockId: (): LiteBlockId => ({
      workchain: readInt(),
      shard: take(8).readBigUInt64LE(0),
      seqno: readInt(),
      root_hash: Buffer.from(take(32)),
      file_hash: Buffer.from(take(32)),
    }),
  }
}
type TlReader = ReturnType<typeof createTlReader>

/** Begins to read an answer. Throws NodeFault for an error, and for another answer than expected. */
function expectAnswer(answer: Buffer, expected: number, faultOf: (text: string) => NodeFault) {
  const reader = createTlReader(answer)
  const tag = reader.tag()
  if (tag === ids.error) {
    const code = reader.int()
    throw faultOf(`${reader.bytes().toString('utf8').slice(0, 300)} (${code})`)
  }
  if (tag !== expected) throw new NodeFault('invalid', 'another answer than expected')
  return reader
}

/** A request, and how its answer is read. */
export type LiteRequest<answer> = {
  bytes: Buffer
  read(answer: Buffer, faultOf: (text: string) => NodeFault): answer
}

const request = <answer>(
  id: number,
  parts: Buffer[],
  expected: number,
  read: (reader: TlReader) => answer,
): LiteRequest<answer> => ({
  bytes: Buffer.concat([int(id), ...parts]),
  read: (answer, faultOf) => read(expectAnswer(answer, expected, faultOf)),
})

/** The newest block, and the hash of the first state. */
export const getMasterchainInfo = () =>
  request(ids.getMasterchainInfo, [], ids.masterchainInfo, (reader) => {
    const last = reader.blockId()
    // The hash of the state, which is not needed.
    reader.take(32)
    const workchain = reader.int()
    const [root_hash, file_hash] = [reader.take(32), reader.take(32)]
    return { last, init: { workchain, root_hash, file_hash } }
  })

/** A whole block. */
export const getBlock = (id: LiteBlockId) =>
  request(ids.getBlock, [writeBlockId(id)], ids.blockData, (reader) => {
    reader.blockId()
    return reader.bytes()
  })

/** The full name of the block with a number. */
export const lookupBlock = ({
  workchain,
  shard,
  seqno,
}: Omit<LiteBlockId, 'root_hash' | 'file_hash'>) =>
  request(
    ids.lookupBlock,
    // Mode 1: by the number.
    [int(1), int(workchain), long(shard), int(seqno)],
    ids.blockHeader,
    (reader) => reader.blockId(),
  )

// Bounds of what an answer may make us allocate.
const mostSteps = 64
const mostSignatures = 10_000

/** Links from a key block to a later block. */
export const getBlockProof = (known: LiteBlockId, target: LiteBlockId) =>
  request(
    ids.getBlockProof,
    // Mode 1: up to a given block.
    [int(1), writeBlockId(known), writeBlockId(target)],
    ids.partialBlockProof,
    readPartialProof,
  )

/** Reads a proof after its constructor. */
export function readPartialProof(reader: TlReader): { links: ForwardLink[]; to: LiteBlockId } {
  // Whether it is complete: what comes last shows that.
  reader.tag()
  reader.blockId()
  const to = reader.blockId()
  const links = Array.from({ length: reader.count(mostSteps) }, (): ForwardLink => {
    if (reader.tag() !== ids.blockLinkForward)
      throw new NodeFault('invalid', 'a proof with a link that is not signed')
    reader.tag()
    return {
      from: reader.blockId(),
      to: reader.blockId(),
      dest_proof: reader.bytes(),
      config_proof: reader.bytes(),
      signatures: readSignatures(reader),
    }
  })
  return { links, to }
}

function readSignatures(reader: TlReader): SignatureSet {
  const tag = reader.tag()
  if (tag !== ids.signatureSetOrdinary && tag !== ids.signatureSetSimplex)
    throw new NodeFault('invalid', 'signatures of an unknown form')
  // The hash of the validators and the number of their session: what counts is who signed.
  reader.take(8)
  const signatures = Array.from({ length: reader.count(mostSignatures) }, () => ({
    node: reader.take(32),
    signature: reader.bytes(),
  }))
  if (tag === ids.signatureSetOrdinary) return { signatures }
  const vote = { session: reader.take(32), slot: reader.take(4), candidate: reader.bytes() }
  return { signatures, vote }
}

/** The state of an account after a masterchain block, with its proof. */
export const getAccountState = (id: LiteBlockId, account: { workchain: number; hash: Buffer }) =>
  request(
    ids.getAccountState,
    [writeBlockId(id), int(account.workchain), account.hash],
    ids.accountState,
    (reader) => {
      reader.blockId()
      const shardBlock = reader.blockId()
      // The proof of the shard: the caller compares the block with the tops of the masterchain block instead.
      reader.bytes()
      return { shardBlock, proof: reader.bytes(), state: reader.bytes() }
    },
  )

/** Runs a get-method on the state after a masterchain block. Only the result is asked for. */
export const runSmcMethod = (
  id: LiteBlockId,
  account: { workchain: number; hash: Buffer },
  { method, params }: { method: number; params: Buffer },
) =>
  request(
    ids.runSmcMethod,
    [
      // Mode 4: the result only, without proofs.
      int(4),
      writeBlockId(id),
      int(account.workchain),
      account.hash,
      long(BigInt(method)),
      tlBytes(params),
    ],
    ids.runMethodResult,
    (reader) => {
      const mode = reader.int()
      reader.blockId()
      reader.blockId()
      // `shard_proof`, `proof`, `state_proof`, `init_c7` and `lib_extras`, each present by its bit.
      for (const bit of [0, 0, 1, 3, 4]) if (mode & (1 << bit)) reader.bytes()
      const exit_code = reader.int()
      return { exit_code, result: mode & 4 ? reader.bytes() : undefined }
    },
  )
