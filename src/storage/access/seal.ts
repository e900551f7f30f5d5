import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'

/** A sealed value cannot be opened: another key, another context, or damage. */
export class SealError extends Error {
  override name = 'SealError'
}

/** Seals secrets for rest, so that a dump of the database gives none away. */
export type Sealer = {
  /** Seals under the context: what is sealed for one use cannot be opened as another. */
  seal(plain: string | Buffer, context: string): Buffer
  /** Opens what was sealed under the same context; throws SealError. */
  open(sealed: Buffer, context: string): Buffer
  /** The public name of the key that seals. */
  key_id: string
  /** The names of all keys that open. */
  key_ids: readonly string[]
  /** Whether a value was sealed with an earlier master key and should be sealed again. */
  isStale(sealed: Buffer): boolean
}

/** A sealer whose keys a running service changes. Keys that it had still open until it is restarted. */
export type KeyRing = Sealer & {
  /** Opens with these keys as well. Gives the ids of those that are new. */
  add(masterKeys: readonly Buffer[]): string[]
  /** Seals with a key that it opens with. */
  use(key_id: string): void
}

// version | key id | iv | tag | ciphertext
const version = 1
const keyIdEnd = 5
const ivEnd = keyIdEnd + 12
const tagEnd = ivEnd + 16

// A key of its own for each purpose, so that no two uses share one.
const subkey = (masterKey: Buffer, info: string): Buffer =>
  Buffer.from(hkdfSync('sha256', masterKey, '', `portolan ${info}`, 32))

type SealKey = { id: string; key: Buffer }

/** The public name of a master key. */
export const keyIdOfMaster = (masterKey: Buffer): string => sealKeyOf(masterKey).id

const sealKeyOf = (masterKey: Buffer): SealKey => {
  if (masterKey.length !== 32)
    throw new SealError(`A master key has 32 bytes, not ${masterKey.length}.`)
  const key = subkey(masterKey, 'seal')
  // The id is public: four bytes of a hash of the derived key say nothing about the master key.
  const id = createHash('sha256').update(key).digest().subarray(0, 4).toString('hex')
  return { id, key }
}

// The header is authenticated with the context, so that neither can be exchanged.
const aadOf = (header: Buffer, context: string): Buffer =>
  Buffer.concat([header, Buffer.from(context, 'utf8')])

const sealWith = ({ id, key }: SealKey, plain: Buffer, context: string): Buffer => {
  const header = Buffer.concat([Buffer.of(version), Buffer.from(id, 'hex')])
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, iv)
  cipher.setAAD(aadOf(header, context))
  const body = Buffer.concat([cipher.update(plain), cipher.final()])
  return Buffer.concat([header, iv, cipher.getAuthTag(), body])
}

const openWith = ({ key }: SealKey, sealed: Buffer, context: string): Buffer => {
  // Lengths were checked by the caller. A wrong tag throws below, whatever part was changed.
  const iv = sealed.subarray(keyIdEnd, ivEnd)
  const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: 16 })
  decipher.setAAD(aadOf(sealed.subarray(0, keyIdEnd), context))
  decipher.setAuthTag(sealed.subarray(ivEnd, tagEnd))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(tagEnd)), decipher.final()])
  } catch {
    throw new SealError('A sealed value is damaged, or was sealed for another use.')
  }
}

const keyIdOf = (sealed: Buffer): string => sealed.subarray(1, keyIdEnd).toString('hex')

/** Seals with the master key; opens with it and, during a rotation, with the earlier ones. */
export const createSealer = (masterKey: Buffer, earlierKeys: readonly Buffer[] = []): KeyRing => {
  let current = sealKeyOf(masterKey)
  const known = new Map([current, ...earlierKeys.map(sealKeyOf)].map((key) => [key.id, key]))
  return {
    seal: (plain, context) => sealWith(current, Buffer.from(plain as string), context),
    open: (sealed, context) => {
      if (sealed.length < tagEnd || sealed[0] !== version)
        throw new SealError('A sealed value is damaged, or of an unknown version.')
      const key = known.get(keyIdOf(sealed))
      if (!key)
        throw new SealError(
          `A value was sealed with the master key ${keyIdOf(sealed)}, but the given one is ${current.id}. Start with the master key of this database.`,
        )
      return openWith(key, sealed, context)
    },
    get key_id() {
      return current.id
    },
    get key_ids() {
      return [...known.keys()]
    },
    // Only the id is compared; the value is not opened.
    isStale: (sealed) => keyIdOf(sealed) !== current.id,
    add: (masterKeys) => {
      const added = masterKeys.map(sealKeyOf).filter(({ id }) => !known.has(id))
      for (const key of added) known.set(key.id, key)
      return added.map(({ id }) => id)
    },
    use: (key_id) => {
      const key = known.get(key_id)
      if (!key) throw new SealError(`The master key ${key_id} is not known.`)
      current = key
    },
  }
}
