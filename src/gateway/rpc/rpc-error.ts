import type { RawJson } from '../../chains/evm/pool/pool-types.ts'
import { errors, type Reason } from '../../contract/errors/errors.ts'
import type { Denial } from '../../domain/access/authorize.ts'

/** An error of the gateway itself, ready to be sent. */
export type Refusal = {
  reason: Reason
  /** What a single call is answered with. */
  status: number
  error: RawJson
  /** Seconds after which a retry can help. */
  retryAfter?: number
}

/** Says why the gateway refuses a call; the data names the reason and never an upstream. */
export function refuse(
  reason: Reason,
  message: string = errors[reason].title,
  data: Record<string, unknown> = {},
): Refusal {
  const { rpc } = errors[reason]
  const error = { code: rpc, message, data: { source: 'gateway', reason, ...data } }
  return { reason, status: statusOf(reason), error: toLatin1(JSON.stringify(error)) }
}

/** The same for a caller that may not do something. */
export const refusalOf = ({ reason, detail, missing }: Denial): Refusal =>
  refuse(reason, detail, missing === undefined ? {} : { missing })

/** The answer to a call as a JSON-RPC object. */
export const errorAnswer = (id: RawJson, error: RawJson): RawJson =>
  `{"jsonrpc":"2.0","id":${id},"error":${error}}`

/** The answer to a call as a JSON-RPC object. */
export const resultAnswer = (id: RawJson, result: RawJson): RawJson =>
  `{"jsonrpc":"2.0","id":${id},"result":${result}}`

/** The same in pieces. */
export const resultPieces = (id: RawJson, result: RawJson): readonly RawJson[] => [
  `{"jsonrpc":"2.0","id":${id},"result":`,
  result,
  '}',
]

// A well-formed exchange is HTTP 200, whatever the method makes of it (docs/decisions/http.md).
const statusOf = (reason: Reason): number => {
  const { rpc, status } = errors[reason]
  return rpc === -32601 || rpc === -32602 || rpc === -32000 ? 200 : status
}

/** Text as raw JSON: one character per byte of its UTF-8. */
export const toLatin1 = (text: string): RawJson => {
  for (let at = 0; at < text.length; at++)
    if (text.charCodeAt(at) > 0x7f) return Buffer.from(text, 'utf8').toString('latin1')
  return text
}
