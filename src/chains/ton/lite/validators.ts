// Signatures of masterchain blocks. A key block names the validators (parameter 34) that sign the blocks after it, up to
// and including the next key block. Since Catchain 2.0 they sign a vote that names the block.

import { createHash } from 'node:crypto'
import { Cell, Dictionary, type Slice } from '@ton/core'
import { isSignedBy, isSupermajority } from '../../signatures.ts'
import { keyIdOf, tlBytes } from './adnl.ts'
import { provenRoot, readConfigParam, readInfo } from './block-cells.ts'
import type { ForwardLink, LiteBlockId, SignatureSet } from './messages.ts'

/** The validators that sign masterchain blocks: keys and weights by short names in hex. */
export type Validators = {
  members: ReadonlyMap<string, { key: Buffer; weight: bigint }>
  total: bigint
}

const tagged = (value: number, ...parts: Buffer[]): Buffer => {
  const head = Buffer.alloc(4)
  head.writeUInt32LE(value)
  return Buffer.concat([head, ...parts])
}

/** Reads parameter 34 of a key block. */
export function readValidators(param: Cell): Validators {
  const slice = param.beginParse()
  const tag = slice.loadUint(8)
  if (tag !== 0x11 && tag !== 0x12) throw new Error('another constructor')
  slice.skip(32 + 32 + 16)
  const main = slice.loadUint(16)
  if (tag === 0x12) slice.skip(64)
  const values = { serialize: refuse, parse: readMember }
  const list =
    tag === 0x12
      ? slice.loadDict(Dictionary.Keys.Uint(16), values)
      : Dictionary.loadDirect(Dictionary.Keys.Uint(16), values, slice)
  const members = new Map<string, { key: Buffer; weight: bigint }>()
  let total = 0n
  // The first ones of the list sign masterchain blocks.
  for (let place = 0; place < main; place++) {
    const member = list.get(place)
    if (!member) throw new Error('a validator is missing')
    members.set(keyIdOf(member.key).toString('hex'), member)
    total += member.weight
  }
  return { members, total }
}
const refuse = (): never => {
  throw new Error('is only read')
}
const readMember = (slice: Slice): { key: Buffer; weight: bigint } => {
  const tag = slice.loadUint(8)
  if ((tag !== 0x53 && tag !== 0x73) || slice.loadUint(32) !== 0x8e81278a)
    throw new Error('another constructor')
  return { key: slice.loadBuffer(32), weight: slice.loadUintBig(64) }
}

/** What validators have signed for a block; undefined where their vote is for another one. */
export function signedBytes(
  { vote }: SignatureSet,
  { root_hash, file_hash, ...id }: LiteBlockId,
): Buffer | undefined {
  if (!vote) return tagged(0xc50b6e70, root_hash, file_hash)
  const { session, slot, candidate } = vote
  // A candidate begins with the name of its block, whether it is a new block or an empty slot after it.
  const tag = candidate.length < 84 ? 0 : candidate.readUInt32LE(0)
  const isNamed =
    (tag === 0xe8f9bcdc || tag === 0x72b4d933) &&
    candidate.readInt32LE(4) === id.workchain &&
    candidate.readBigUInt64LE(8) === id.shard &&
    candidate.readInt32LE(16) === id.seqno &&
    candidate.subarray(20, 52).equals(root_hash) &&
    candidate.subarray(52, 84).equals(file_hash)
  if (!isNamed) return undefined
  const hash = createHash('sha256').update(candidate).digest()
  // A vote to finalize the candidate, in one session of the validators.
  const finalize = tagged(0x40a7e105, tagged(0xb691cd3f, slot, hash))
  return tagged(0xa8e33df8, session, tlBytes(finalize))
}

/** Why a block is not signed by more than two thirds of the validators; undefined where it is. */
export function refusalOf(
  block: LiteBlockId,
  set: SignatureSet,
  { members, total }: Validators,
): string | undefined {
  const message = signedBytes(set, block)
  if (!message) return 'the vote is for another block'
  const seen = new Set<string>()
  let weight = 0n
  for (const { node, signature } of set.signatures) {
    const name = node.toString('hex')
    const member = members.get(name)
    // A lite server sends the signatures that count; any other one means that it lies.
    if (!member || seen.has(name)) return 'a signer is no validator, or signs twice'
    seen.add(name)
    if (!isSignedBy(member.key, message, signature)) return 'a signature is false'
    weight += member.weight
    if (isSupermajority(weight, total)) return undefined
  }
  return `signed by ${weight} of ${total}`
}

/** The validators that a key block names, by a proof of its configuration. */
export const provenValidators = ({ from, config_proof }: ForwardLink): Validators =>
  readValidators(readConfigParam(provenRoot(Cell.fromBoc(config_proof)[0]!, from.root_hash), 34))

/**
 * Why a link does not prove its block; `isKey` says whether the block is a key block where it does. Cells that
 * cannot be read throw.
 */
export function checkLink(
  { from, to, dest_proof, signatures }: ForwardLink,
  validators: Validators,
): { refusal: string } | { isKey: boolean } {
  const info = readInfo(provenRoot(Cell.fromBoc(dest_proof)[0]!, to.root_hash))
  if (info.workchain !== -1 || info.seqno !== to.seqno || to.workchain !== -1)
    return { refusal: 'the header is of another block' }
  if (info.prevKeySeqno !== from.seqno)
    return { refusal: `key block ${info.prevKeySeqno} lies between` }
  const refusal = refusalOf(to, signatures, validators)
  return refusal ? { refusal } : { isKey: info.isKey }
}
