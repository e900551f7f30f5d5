import { randomBytes } from 'node:crypto'
import { link, mkdir, open, readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/** The master key is missing or malformed; the message says what to do. */
export class MasterKeyError extends Error {
  override name = 'MasterKeyError'
}

/** Where the master key comes from: its text, or a file, which may be made when it is missing. */
export type MasterKeySource = { value: string } | { file: string; create?: boolean }

const parse = (text: string, place: string): Buffer => {
  const trimmed = text.trim()
  if (/^[0-9a-f]{64}$/i.test(trimmed)) return Buffer.from(trimmed, 'hex')
  if (/^[A-Za-z0-9+/]{43}=$/.test(trimmed)) return Buffer.from(trimmed, 'base64')
  throw new MasterKeyError(
    `${place} is not a master key: it must be 32 bytes as 64 hex digits or as base64. Make one with: openssl rand -hex 32`,
  )
}

const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code

// A bound on the work of opening an unknown value; a rotation needs two.
const maxKeys = 8

/** One key per line: the first one seals, all of them open. */
const parseAll = (text: string, place: string): Buffer[] => {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  if (lines.length > maxKeys)
    throw new MasterKeyError(`${place} has more than ${maxKeys} master keys.`)
  return lines.length === 0 ? [parse('', place)] : lines.map((line) => parse(line, place))
}

const readKeys = async (file: string): Promise<Buffer[] | undefined> => {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined
    throw new MasterKeyError(`The master key file ${file} cannot be read (${codeOf(error)}).`)
  })
  return text === undefined ? undefined : parseAll(text, `The content of ${file}`)
}

// Complete or absent, even after a power cut: what is sealed with a lost key is lost.
const createKey = async (file: string): Promise<void> => {
  const directory = dirname(file)
  await mkdir(directory, { recursive: true })
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  const handle = await open(draft, 'wx', 0o600)
  try {
    await handle.writeFile(`${randomBytes(32).toString('hex')}\n`)
    await handle.sync()
    await handle.close()
    // Unlike a rename, a link never replaces the key that another process has just made.
    await link(draft, file).catch((error: unknown) => {
      if (codeOf(error) !== 'EEXIST') throw error
    })
  } finally {
    await rm(draft, { force: true })
  }
  const folder = await open(directory, 'r')
  await folder.sync().finally(() => folder.close())
}

/** The master keys, 32 bytes each, the one that seals first; throws MasterKeyError. */
export const loadMasterKeys = async (source: MasterKeySource): Promise<Buffer[]> => {
  if ('value' in source) return parseAll(source.value, 'The given value')
  const keys = await readKeys(source.file)
  if (keys) return keys
  if (!source.create) throw new MasterKeyError(`The master key file ${source.file} does not exist.`)
  await createKey(source.file).catch((error: unknown) => {
    throw new MasterKeyError(
      `The master key file ${source.file} cannot be made (${codeOf(error)}).`,
    )
  })
  return (await readKeys(source.file)) as Buffer[]
}
