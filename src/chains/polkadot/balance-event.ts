/** A field of an event: an account, a number, or the id of a token. */
export type EventField = { name: string; account?: Buffer; number?: bigint; token_id?: Buffer }

/** An event of a pallet that matters for balances. */
export type BalanceEvent = {
  /** Its number in the block. */
  index: number
  /** The extrinsic that it belongs to; undefined for what the chain does by itself. */
  extrinsic: number | undefined
  pallet: string
  name: string
  fields: readonly EventField[]
}

/** Any event, without its fields. */
export type EventMark = {
  /** Equal for the events of one extrinsic, and of one phase outside of them. */
  phase: string
  pallet: string
  name: string
  /** The message of another chain whose processing it ends, or that it says was sent. */
  message_id?: Buffer
}
