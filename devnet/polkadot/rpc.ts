/** A refusal in the words and numbers of a node. */
export class RpcError extends Error {
  readonly code: number
  readonly data: string | undefined
  constructor(code: number, message: string, data?: string) {
    super(message)
    this.code = code
    this.data = data
  }
}

/** One JSON-RPC method. What it notifies of is sent after its answer. */
export type Method = (...params: never[]) => unknown

/** Sends a notification of a subscription. */
export type Notify = (method: string, subscription: string, result: unknown) => void

/** Methods that hold something for one connection, and let go of it when that ends. */
export type Session = { methods: Record<string, Method>; close(): void }

/** A request as it came; nothing of it is checked. */
export type Request = { id?: unknown; method?: unknown; params?: unknown }

type Reply = { jsonrpc: '2.0'; id: unknown } & (
  | { result: unknown }
  | { error: { code: number; message: string; data?: string } }
)

/** Reads what a client sent: one request, or many. */
export function parseRequests(text: string): Request | Request[] | undefined {
  try {
    const asked: unknown = JSON.parse(text)
    return typeof asked === 'object' && asked !== null ? asked : undefined
  } catch {
    return undefined
  }
}

/** Does what is asked. A request without an id wants no answer. */
export function answerRequest(
  { id, method, params }: Request,
  methods: Record<string, Method>,
  change?: (method: string, result: unknown) => unknown,
): Reply | undefined {
  const name = String(method)
  const work = Object.hasOwn(methods, name) ? methods[name] : undefined
  try {
    if (!work) throw new RpcError(-32_601, 'Method not found')
    const value = work(...((Array.isArray(params) ? params : []) as never[])) ?? null
    const result = change?.(name, value) ?? value
    return id === undefined ? undefined : { jsonrpc: '2.0', id, result }
  } catch (error) {
    return id === undefined ? undefined : failure(error, id)
  }
}

/** The answer to what cannot be done. */
export function failure(error: unknown, id: unknown = null): Reply {
  const code = error instanceof RpcError ? error.code : -32_000
  const data = error instanceof RpcError ? error.data : undefined
  const message = error instanceof Error ? error.message : String(error)
  return { jsonrpc: '2.0', id, error: { code, message, ...(data && { data }) } }
}
