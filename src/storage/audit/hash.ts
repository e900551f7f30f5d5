import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  verify,
} from 'node:crypto'
import type { AuditEventRow } from './tables.ts'

// The format is part of the interface (docs/audit.md): an export is verified without this code.

/** What the first event of a chain continues. */
export const genesisHash: Buffer = Buffer.alloc(32)

/** The columns that the hash of an event covers. */
export type HashedEvent = Pick<
  AuditEventRow,
  | 'sequence'
  | 'event_id'
  | 'event_time'
  | 'actor_type'
  | 'credential_id'
  | 'role'
  | 'principal_organization_id'
  | 'organization_id'
  | 'service'
  | 'operation'
  | 'result'
  | 'reason'
  | 'event_count'
  | 'detail_hash'
>

/** SHA-256 of the previous hash and of the event as a JSON array. */
export const hashEvent = (previous: Buffer, event: HashedEvent): Buffer => {
  const fields = [
    event.sequence,
    event.event_id,
    event.event_time.toISOString(),
    event.actor_type,
    event.credential_id,
    event.role,
    event.principal_organization_id,
    event.organization_id,
    event.service,
    event.operation,
    event.result,
    event.reason,
    event.event_count,
    event.detail_hash.toString('hex'),
  ]
  return createHash('sha256').update(previous).update(JSON.stringify(fields)).digest()
}

/** SHA-256 of the salt and the detail: without the salt an erased client address cannot be guessed. */
export const hashDetail = (salt: Buffer, detail: string): Buffer =>
  createHash('sha256').update(salt).update(detail).digest()

/** A place in the chain. */
export type ChainPlace = { sequence: number; hash: Buffer }

/** A head says that the chain reaches this place, an anchor that everything up to it was removed by retention. */
export type PlaceKind = 'head' | 'anchor'

const signedText = (kind: PlaceKind, { sequence, hash }: ChainPlace): Buffer =>
  Buffer.from(`portolan audit ${kind} 1 ${sequence} ${hash.toString('hex')}`)

/** Makes the key pair of a chain: Ed25519, in DER. */
export const makeChainKeys = (): { public_key: Buffer; private_key: Buffer } => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  return {
    public_key: publicKey.export({ type: 'spki', format: 'der' }),
    private_key: privateKey.export({ type: 'pkcs8', format: 'der' }),
  }
}

/** Signs a place as head or as anchor: one signature cannot be used as the other. */
export const signPlace = (private_key: Buffer, kind: PlaceKind, place: ChainPlace): Buffer =>
  sign(
    null,
    signedText(kind, place),
    createPrivateKey({ key: private_key, type: 'pkcs8', format: 'der' }),
  )

/** Whether a signature is of this place and key. */
export const isSigned = (
  public_key: Buffer,
  kind: PlaceKind,
  place: ChainPlace,
  signature: Buffer,
): boolean => {
  try {
    const key = createPublicKey({ key: public_key, type: 'spki', format: 'der' })
    return verify(null, signedText(kind, place), key, signature)
  } catch {
    return false
  }
}
