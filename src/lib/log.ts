type Write = (fields: object, message: string) => void

/** What the lower layers know of the logger: structured fields first, then a constant message. */
export type Log = { debug: Write; info: Write; warn: Write; error: Write }

/** A logger that says nothing, for tests and short commands. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }
