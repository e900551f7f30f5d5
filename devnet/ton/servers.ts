import { ApiError } from './api-error.ts'

/** The servers that offer the toncenter HTTP API v2: ton-http-api (Python) and its successor in C++. */
export type ServerKind = 'cpp' | 'python'

/** What differs between the servers, as their sources have it (docs/ton.md). */
export type Server = {
  /** Whether the server has a method of API v2. */
  has(method: string): boolean
  unknownMethod(): ApiError
  unknownParameter(method: string, name: string): ApiError
  /** Whether answers to JSON-RPC repeat `jsonrpc` and `id`. */
  echoesId: boolean
  /** Transactions as `getBlockTransactionsExt` writes them. */
  writePage(wire: string): string
  wrongAddress(text: string): ApiError
}

const parties = /"(source|destination)":"([^"]*)"/g
const accounts = /"account":"(-?\d+:[0-9a-f]{64})"/g

/** Both servers give the parties of a message as objects here, and as texts in `getTransactions`. */
const asObjects = (wire: string): string =>
  wire.replace(parties, '"$1":{"@type":"accountAddress","account_address":"$2"}')

const cpp: Server = {
  has: () => true,
  unknownMethod: () => new ApiError(404, 'Not Found'),
  unknownParameter: (_, name) =>
    new ApiError(422, `failed to parse post request: Unknown property '${name}'`),
  // The server calls its own REST method and passes the answer on.
  echoesId: false,
  writePage: (wire) =>
    asObjects(wire).replace(
      accounts,
      (_, account: string) => `"account":"${account.toUpperCase()}"`,
    ),
  wrongAddress: (text) =>
    new ApiError(422, `failed to parse post request: Failed to parse ton_addr: '${text}'`),
}

const python: Server = {
  has: (method) => method !== 'getShards',
  unknownMethod: () => new ApiError(422, 'Unknown method'),
  unknownParameter: (method, name) =>
    new ApiError(422, `TypeError: ${method}() got an unexpected keyword argument '${name}'`),
  echoesId: true,
  writePage: asObjects,
  wrongAddress: () => new ApiError(416, 'Incorrect address'),
}

/** The server of a kind. */
export const serverOf = (kind: ServerKind): Server => (kind === 'cpp' ? cpp : python)

/** The rate limit of a plan, and what it came to. */
export type Plan = {
  /** Counts a request; false when it is one too many. */
  admits(now: number): boolean
  counts(): { admitted: number; refused: number }
}

/** Admits so many requests in any second. */
export function createPlan(perSecond: number): Plan {
  const times: number[] = []
  const counts = { admitted: 0, refused: 0 }
  return {
    admits: (now) => {
      while (times.length > 0 && times[0]! <= now - 1_000) times.shift()
      const isAdmitted = times.length < perSecond
      if (isAdmitted) times.push(now)
      counts[isAdmitted ? 'admitted' : 'refused']++
      return isAdmitted
    },
    counts: () => ({ ...counts }),
  }
}
