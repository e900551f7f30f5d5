// Requests that are wrong in themselves, before or after authentication. `errors` lists every bad field at once, so that a
// client is corrected in one step.

import type { ErrorRow } from './row.ts'

/** Requests that cannot be read or checked; part of the one table of errors. */
export const requestErrors = {
  INVALID_REQUEST: {
    status: 400,
    code: 'INVALID_ARGUMENT',
    rpc: -32602,
    retry: 'never',
    title: 'The request is not valid',
    help: 'Fix the fields listed in `errors`. Field reasons: REQUIRED, AT_LEAST_ONE_REQUIRED, UNKNOWN_FIELD, INVALID_TYPE, INVALID_FORMAT, NOT_ALLOWED, TOO_SHORT, TOO_LONG, TOO_FEW, TOO_MANY, OUT_OF_RANGE, INVALID_ADDRESS, INVALID_TOKEN, INVALID_CONTRACT, INVALID_ENDPOINT, INVALID_HEADER, INVALID_SIGNATURE, WOULD_FAIL.',
  },
  // Written by the server of HTTP, before any route: such a request has no operation and no credential.
  MALFORMED_REQUEST: {
    status: 400,
    code: 'INVALID_ARGUMENT',
    rpc: -32600,
    retry: 'never',
    title: 'The request is not valid HTTP',
    help: 'The request is not HTTP/1.1, or a proxy corrupted it.',
  },
  INVALID_JSON: {
    status: 400,
    code: 'INVALID_ARGUMENT',
    rpc: -32700,
    retry: 'never',
    title: 'The body is not valid JSON',
    help: 'Send one JSON object in UTF-8, without duplicate keys, NUL characters, lone surrogates or more than 16 levels. An empty body counts as `{}`.',
  },
  // One answer for a token of another list, another organization and a changed one: the token is sealed, and which part of
  // it does not fit is not shown.
  INVALID_PAGE_TOKEN: {
    status: 400,
    code: 'INVALID_ARGUMENT',
    rpc: -32602,
    retry: 'never',
    title: 'The page token does not belong to this list',
    help: 'Use `next_page_token` of the previous page unchanged, with the same operation and filters. Otherwise start without a token.',
  },
  ROUTE_NOT_FOUND: {
    status: 404,
    code: 'NOT_FOUND',
    rpc: -32601,
    retry: 'never',
    title: 'There is nothing at this address',
    help: 'Operations are at `POST /v1/{chain}/{Operation}`, on another network than the default one at `POST /v1/{chain}/{network}/{Operation}`. `/status` lists the chains and networks; `admin` is administration. Names are case-sensitive.',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    code: 'INVALID_ARGUMENT',
    rpc: -32600,
    retry: 'never',
    title: 'The address does not accept this HTTP method',
    help: 'Use the method that the `Allow` header names. Operations are always POST.',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    code: 'DEADLINE_EXCEEDED',
    rpc: -32600,
    retry: 'later',
    title: 'The request did not arrive in time',
    help: 'Send the whole request within the time limit (`server.request_timeout_seconds`).',
  },
  BODY_TOO_LARGE: {
    status: 413,
    code: 'INVALID_ARGUMENT',
    rpc: -32600,
    retry: 'never',
    title: 'The body is too large',
    help: 'Send less at once. The limit is `server.body_limit_bytes`, 1 MiB as shipped.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    code: 'INVALID_ARGUMENT',
    rpc: -32600,
    retry: 'never',
    title: 'The content type is not application/json',
    help: 'Send `Content-Type: application/json`, in UTF-8 and without a content encoding.',
  },
  HEADERS_TOO_LARGE: {
    status: 431,
    code: 'INVALID_ARGUMENT',
    rpc: -32600,
    retry: 'never',
    title: 'The request headers are too large',
    help: 'Send at most 16 KiB of headers.',
  },
} as const satisfies Record<string, ErrorRow>
