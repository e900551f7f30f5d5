/** Whether a retry can help: never, later, or after the time that the answer names. */
export type Retry = 'never' | 'later' | 'after'

/** What the table says of one reason. */
export type ErrorRow = {
  status: number
  /** Canonical code of Google AIP-193. */
  code: string
  /** The JSON-RPC code where the gateway refuses for the same reason. */
  rpc: number
  retry: Retry
  title: string
  /** What the caller can do about it; shown in the docs. */
  help: string
}
