/** A failure of the embedded database that an operator can act on; the message is a whole sentence. */
export class EmbeddedPostgresError extends Error {
  override name = 'EmbeddedPostgresError'
}
