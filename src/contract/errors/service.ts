// Failures that are not the fault of the request. Each says whether a retry is safe, because a caller cannot know from a
// status whether something was changed.

import type { ErrorRow } from './row.ts'

/** Failures of the service itself and of what it depends on; part of the one table of errors. */
export const serviceErrors = {
  INTERNAL: {
    status: 500,
    code: 'INTERNAL',
    rpc: -32603,
    retry: 'later',
    title: 'The service failed',
    help: 'An internal error. The operator finds it in the log by the `request_id`.',
  },
  NOT_IMPLEMENTED: {
    status: 501,
    code: 'UNIMPLEMENTED',
    rpc: -32601,
    retry: 'never',
    title: 'This version does not have the operation yet',
    help: '`/openapi.json` lists the available operations.',
  },
  DATABASE_UNAVAILABLE: {
    status: 503,
    code: 'UNAVAILABLE',
    rpc: -32603,
    retry: 'after',
    title: 'The database is unreachable',
    help: 'Retry after the time in `Retry-After`. Nothing was changed, unless the answer was lost on the way: reading first is safe.',
  },
  // 421 and not 404, so that a proxy which routes to the wrong process is noticed as such.
  ROLE_NOT_SERVED: {
    status: 421,
    code: 'FAILED_PRECONDITION',
    rpc: -32603,
    retry: 'never',
    title: 'This process does not serve such requests',
    help: 'The process that answered runs other parts of the service (`server.roles`). The operator has to route operations to processes with the role `api`, gateway addresses to those with `gateway` and the console to those with `console`.',
  },
  CHAIN_NOT_CONFIGURED: {
    status: 503,
    code: 'UNAVAILABLE',
    rpc: -32603,
    retry: 'after',
    title: 'The chain of this service is not configured here',
    help: 'The operator has to add it under `chains` of the configuration. Until then nothing new can be registered or read from the chain; what is stored can be read and removed.',
  },
  UPSTREAM_UNAVAILABLE: {
    status: 503,
    code: 'UNAVAILABLE',
    rpc: -32603,
    retry: 'after',
    title: 'No node of the network can answer now',
    help: 'Retry after the time in `Retry-After`. The operator sees the state of every node in `portolan chains`.',
  },
  UPSTREAM_TIMEOUT: {
    status: 504,
    code: 'DEADLINE_EXCEEDED',
    rpc: -32002,
    retry: 'later',
    title: 'No node of the network answered in time',
    help: 'Request less, or retry later. A transaction may have been accepted: look it up by its hash before you send another one.',
  },
  OPERATION_TIMEOUT: {
    status: 504,
    code: 'DEADLINE_EXCEEDED',
    rpc: -32002,
    retry: 'later',
    title: 'The operation took too long',
    help: 'The database or a node answers slowly. The change may or may not have been made: read first, then retry.',
  },
  SHUTTING_DOWN: {
    status: 503,
    code: 'UNAVAILABLE',
    rpc: -32603,
    retry: 'after',
    title: 'The service is stopping',
    help: 'Retry; another process or the next start will answer.',
  },
} as const satisfies Record<string, ErrorRow>
