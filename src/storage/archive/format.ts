/** An export or import that cannot be done; the message is a whole sentence. */
export class ArchiveError extends Error {
  override name = 'ArchiveError'
}

/** What kind of frame it is; in the file one byte each. */
export const frameType = {
  header: 0x48,
  table: 0x54,
  data: 0x44,
  tableEnd: 0x45,
  end: 0x5a,
} as const

/** The first frame: the format of the archive and the version that wrote it. */
export type Header = {
  format: 'portolan-archive'
  formatVersion: number
  /** The name of the newest migration that the exported database had. */
  schemaVersion: string
  serviceVersion: string
  serverVersion: string
  createTime: string
  tableCount: number
}

/** A partition, in words that the server understands. */
export type Partition = {
  name: string
  parent: string
  bound: string
  options: string[]
  key: string | null
}

/** Opens the section of a table; its rows follow in data frames, as text of COPY. */
export type TableHead = { table: string; columns: string[]; partitions: Partition[] }

/** Closes the section of a table. */
export type TableEnd = { table: string; rows: number; bytes: number; sha256: string }

/** The last frame; an archive without it is not whole. */
export type End = { rows: number; sequences: { name: string; lastValue: string }[]; sha256: string }

/** The version of the file format that this code writes. */
export const formatVersion = 1

/** Reads the header, refusing what is not an archive or one of a later format. */
export const parseHeader = (payload: Buffer): Header => {
  const header = JSON.parse(payload.toString('utf8')) as Header
  if (header.format !== 'portolan-archive') {
    throw new ArchiveError('The file is not a Portolan archive.')
  }
  // No reader for older formats: there is one version so far.
  if (header.formatVersion !== formatVersion) {
    throw new ArchiveError(
      `The archive has format version ${header.formatVersion}, but this Portolan reads version ${formatVersion}; ` +
        `use the Portolan that wrote it (${header.serviceVersion}) or a newer one.`,
    )
  }
  return header
}
