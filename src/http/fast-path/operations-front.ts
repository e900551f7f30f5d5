// Plain requests for operations on bare sockets. They take the same `perform` as those of Node's server; whatever is
// unusual is left to Node.

import { idempotencyHeader } from '../../contract/idempotency.ts'
import { authHeaders } from '../../contract/signature.ts'
import type { Ids } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Outage } from '../../lib/outage.ts'
import type { Finished } from '../exchange.ts'
import { hungUp, noFacts, requestIdOf } from '../exchange.ts'
import type { Operations } from '../operations.ts'
import { problemResponse, toOperationError } from '../problems.ts'
import type { Route, Routes } from '../routes.ts'
import type { RequestHead } from './request-head.ts'

/** A request for an operation as a bare socket brings it. */
export type FoundOperation = {
  route: Route
  target: string
  path: string
  client: string
  headers: Record<string, string>
}

/** Takes the answer: its status, names and values of its headers in turn, its body. */
type Done = (status: number, headers: string[], body: string) => void

/** Answers plain requests for operations on bare sockets. */
export type OperationsFront = {
  bodyLimitBytes: number
  /** Undefined for what is not an operation, or is left to Node's server. The URL is without the base path. */
  find(head: RequestHead, url: string, client: string): FoundOperation | undefined
  /** Calls back once and later; answers with what is to be done if the caller hangs up before. */
  answer(found: FoundOperation, body: Buffer, done: Done): () => void
}

// The headers that an operation or this front reads; the others are not copied.
const wanted: ReadonlySet<string> = new Set([
  ...Object.values(authHeaders),
  idempotencyHeader,
  'content-type',
  'content-encoding',
  'x-request-id',
  'traceparent',
])

/** Makes the front. */
export function createOperationsFront(options: {
  operations: Pick<Operations, 'perform'>
  routes: Pick<Routes, 'find'>
  bodyLimitBytes: number
  ids: Ids
  log: Log
  database?: Pick<Outage, 'failed'>
  onFinished(finished: Finished): void
}): OperationsFront {
  const { operations, routes, bodyLimitBytes, ids, log, onFinished } = options
  return {
    bodyLimitBytes,
    find({ url: target, raw }, url, client) {
      const query = url.indexOf('?')
      const path = query < 0 ? url : url.slice(0, query)
      const route = routes.find(path)
      if (!route) return undefined
      const headers: Record<string, string> = {}
      for (let at = 0; at < raw.length; at += 2) {
        const name = raw[at]!.toLowerCase()
        if (!wanted.has(name)) continue
        // What a header means that comes twice is for Node to say.
        if (name in headers) return undefined
        headers[name] = raw[at + 1]!
      }
      return { route, target, path, client, headers }
    },
    answer({ route, target, path, client, headers }, body, done) {
      const begun = performance.now()
      const request_id = requestIdOf(headers['x-request-id'], ids)
      const lines = ['x-request-id', request_id, 'x-content-type-options', 'nosniff']
      const hangUp = new AbortController()
      const facts = noFacts(request_id)
      facts.bytes_in = body.length
      let isOver = false
      const finish = (status: number): boolean => {
        if (isOver) return false
        isOver = true
        const seconds = (performance.now() - begun) / 1000
        // After the answer, which it would delay.
        const route = 'operations'
        setImmediate(onFinished, { route, path, status, seconds, request_id, client, facts })
        return true
      }
      const setHeader = (name: string, value: string) => void lines.push(name, value)
      const { signal } = hangUp
      const given = { route, method: 'POST', target, headers, body }
      const call = { ...given, client, signal, facts, setHeader }
      operations.perform(call).then(
        (answer) => {
          lines.push('content-type', 'application/json')
          facts.bytes_out = Buffer.byteLength(answer)
          if (finish(200)) done(200, lines, answer)
        },
        (error: unknown) => {
          if (isOver) return
          const { trace_id } = facts
          const failure = toOperationError(
            error,
            log,
            { request_id, client, trace_id },
            options.database,
          )
          const problem = problemResponse(failure, request_id, trace_id)
          facts.reason = failure.reason
          facts.bytes_out = Buffer.byteLength(problem.body)
          for (const [name, value] of Object.entries(problem.headers)) put(lines, name, value)
          if (finish(problem.status)) done(problem.status, lines, problem.body)
        },
      )
      return () => {
        if (finish(hungUp)) hangUp.abort(new Error('the caller hung up'))
      }
    },
  }
}

/** A header that comes again takes the place of the first one, as in Node's server. */
function put(lines: string[], name: string, value: string): void {
  for (let at = 0; at < lines.length; at += 2)
    if (lines[at]!.toLowerCase() === name.toLowerCase()) {
      lines[at] = name
      lines[at + 1] = value
      return
    }
  lines.push(name, value)
}
