/** An export or import that cannot be done; the message is a whole sentence. */
export class ArchiveError extends Error {
  override name = 'ArchiveError'
}
