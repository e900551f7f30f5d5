// Refusals of the gateway itself. Errors of nodes are not here: they are passed on as the node wrote them, so that clients
// of Ethereum libraries find the messages they know. The JSON-RPC codes are those of EIP-1474 where it has one.

import { filterIdleMinutes } from '../limits.ts'
import type { ErrorRow } from './row.ts'

/** What can go wrong at the node gateway alone; part of the one table of errors. */
export const gatewayErrors = {
  INVALID_RPC_REQUEST: {
    status: 400,
    code: 'INVALID_ARGUMENT',
    rpc: -32600,
    retry: 'never',
    title: 'This is not a JSON-RPC 2.0 request',
    help: 'Send `{"jsonrpc": "2.0", "method": …, "params": […], "id": …}` or a batch of such objects that is not empty. The id is a string, a number or null; no member is duplicated.',
  },
  INVALID_PARAMS: {
    status: 400,
    code: 'INVALID_ARGUMENT',
    rpc: -32602,
    retry: 'never',
    title: 'A parameter of the method is not valid',
    help: 'Fix the parameter named in the message. Quantities are `0x` and hex digits without leading zeros, byte data is `0x` and two digits per byte. The gateway answers this with HTTP 200.',
  },
  // Before a node is asked: each has a limit of its own, and a range that some accept would fail by chance.
  LOG_RANGE_TOO_LARGE: {
    status: 400,
    code: 'INVALID_ARGUMENT',
    rpc: -32602,
    retry: 'never',
    title: 'The block range or its logs are too many for one call',
    help: 'Request at most `max_range` blocks (in the data) at once. The gateway answers this with HTTP 200.',
  },
  LOG_BLOCK_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32000,
    retry: 'never',
    title: 'The block whose logs were asked for is not in the chain',
    help: 'No node knows a block with this hash, or it has left the chain (EIP-234). Request the logs of the block that replaced it. The gateway answers this with HTTP 200.',
  },
  RESPONSE_TOO_LARGE: {
    status: 400,
    code: 'INVALID_ARGUMENT',
    rpc: -32000,
    retry: 'never',
    title: 'The answer of the node is too large',
    help: 'Request less at once. The gateway answers this with HTTP 200.',
  },
  // One answer whatever is wrong with the key, so that keys cannot be probed.
  INVALID_KEY: {
    status: 401,
    code: 'UNAUTHENTICATED',
    rpc: -32600,
    retry: 'never',
    title: 'The request has no valid API key',
    help: 'The gateway is at `/<chain>/<network>/v1/<api_key>`, or at `/<chain>/<network>/v1` with the header `Authorization: Bearer <api_key>`. A key that is unknown or deleted and a key of a disabled organization give this same answer.',
  },
  UPGRADE_REQUIRED: {
    status: 426,
    code: 'FAILED_PRECONDITION',
    rpc: -32600,
    retry: 'never',
    title: 'This address is for WebSockets',
    help: 'Open a WebSocket (RFC 6455, version 13) at this address. JSON-RPC over HTTP is at `POST /<chain>/<network>/v1/<api_key>`.',
  },
  INVALID_HANDSHAKE: {
    status: 400,
    code: 'INVALID_ARGUMENT',
    rpc: -32600,
    retry: 'never',
    title: 'The WebSocket handshake is not valid',
    help: 'A handshake is a GET of HTTP/1.1 with `Connection: Upgrade`, `Upgrade: websocket`, `Sec-WebSocket-Version: 13` and a `Sec-WebSocket-Key` of 16 bytes in base64 (RFC 6455, 4.1). The message names the error.',
  },
  NETWORK_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32600,
    retry: 'never',
    title: 'This chain or network is not configured',
    help: 'The gateway is at `/<chain>/<network>/v1/<api_key>`; `/status` lists the chains and their networks.',
  },
  RPC_METHOD_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32601,
    retry: 'never',
    title: 'The gateway does not offer this method',
    help: 'The operator may allow further read methods with `gateway.allowed_methods`. Subscriptions need a WebSocket. The gateway answers this with HTTP 200.',
  },
  // The text of geth, by which libraries recognize that they must install the filter again.
  FILTER_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32000,
    retry: 'never',
    title: 'Filter not found',
    help: `Create a new filter and read missed logs with \`getLogs\`. A filter expires after ${filterIdleMinutes} minutes without a poll, or when its buffer is full; a filter of another key gives the same answer. The gateway answers this with HTTP 200.`,
  },
  // An extension: the client reads the missed blocks by calls and subscribes without `resume`.
  RESUME_BLOCK_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32000,
    retry: 'never',
    title: 'The block to resume from is not known',
    help: 'The block is too old or was never part of the chain. Subscribe without `resume` and read missed logs with `getLogs`.',
  },
  BATCH_TOO_LARGE: {
    status: 413,
    code: 'INVALID_ARGUMENT',
    rpc: -32600,
    retry: 'never',
    title: 'The batch has too many calls',
    help: 'Send less at once. The limit is `gateway.batch_limit`, 1000 calls as shipped.',
  },
  TOO_MANY_OPEN: {
    status: 429,
    code: 'RESOURCE_EXHAUSTED',
    rpc: -32005,
    retry: 'after',
    title: 'The key has too many connections, subscriptions, filters or event streams',
    help: 'Close some of them. The limits are `gateway.connections_per_key`, `gateway.subscriptions_per_key` and `gateway.filters_per_key`, and for addresses and topics in all of them `gateway.filter_terms_per_key` and `gateway.filter_terms_per_organization`; for event streams `server.streams_per_key` and `server.streams_per_organization`.',
  },
} as const satisfies Record<string, ErrorRow>
