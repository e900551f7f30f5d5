import { describe, expect, test } from 'vitest'
import { createClient } from './client.ts'
import { PortolanError } from './error.ts'
import { closedPort, type Handler, listen, problem, reply } from './testing/server.ts'

const credential = { api_key: 'key-1', api_secret: 'secret' }

const failureOf = async (promise: Promise<unknown>) => {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof PortolanError)) throw new Error(`not a PortolanError: ${error}`)
  const { status, code, reason, detail, request_id, errors, retry_after } = error
  return { status, code, reason, detail, request_id, errors, retry_after }
}

const answered = async (handler: Handler) => {
  const { base_url } = await listen(handler)
  const failure = await failureOf(
    createClient({ base_url, ...credential, retries: 0 }).c.GetWallet({ wallet_id: 'w' }),
  )
  return { ...failure, detail: failure.detail.replace(base_url, 'http://host') }
}

describe('a failure of the service', () => {
  test('carries the whole problem', async () => {
    const body = problem(400, 'INVALID_ARGUMENT', 'INVALID_REQUEST', {
      errors: [{ field: 'wallet_id', reason: 'TOO_LONG', detail: 'Must have at most 100.' }],
    })
    expect(await answered((_, response) => reply(response, 400, body))).toMatchInlineSnapshot(`
      {
        "code": "INVALID_ARGUMENT",
        "detail": "What went wrong.",
        "errors": [
          {
            "detail": "Must have at most 100.",
            "field": "wallet_id",
            "reason": "TOO_LONG",
          },
        ],
        "reason": "INVALID_REQUEST",
        "request_id": "r-1",
        "retry_after": undefined,
        "status": 400,
      }
    `)
  })

  test('reads well as a message', () => {
    const error = new PortolanError({
      status: 400,
      code: 'INVALID_ARGUMENT',
      reason: 'INVALID_REQUEST',
      detail: 'The request is not valid.',
      request_id: 'r-1',
      errors: [{ field: 'name', reason: 'REQUIRED', detail: 'Is required.' }],
    })
    expect(String(error)).toMatchInlineSnapshot(`
      "PortolanError: INVALID_REQUEST: The request is not valid. (request r-1)
        name: Is required."
    `)
  })

  test.each([
    ['7', 7],
    ['0', 0],
    ['Wed, 21 Oct 2026 07:28:30 GMT', 30],
    ['soon', undefined],
  ])('reads Retry-After: %s', async (value, expected) => {
    const headers = { 'retry-after': value, date: 'Wed, 21 Oct 2026 07:28:00 GMT' }
    const body = problem(429, 'RESOURCE_EXHAUSTED', 'RATE_LIMITED')
    const failure = await answered((_, response) => reply(response, 429, body, headers))
    expect(failure.retry_after).toBe(expected)
  })
})

describe('an answer of something in between', () => {
  test('an error page', async () => {
    const failure = await answered((_, response) => {
      response.writeHead(502, { 'content-type': 'text/html; charset=utf-8' })
      response.end(`<html>\n<h1>Bad Gateway</h1>${'<p>nginx</p>'.repeat(50)}`)
    })
    expect(failure).toMatchInlineSnapshot(`
      {
        "code": "UNAVAILABLE",
        "detail": "http://host/v1/c/GetWallet answered HTTP 502 with text/html instead of JSON of the service: <html> <h1>Bad Gateway</h1><p>nginx</p><p>nginx</p><p>nginx</p><p>nginx</p><p>nginx</p><p>nginx</p><… Is base_url right, or did a proxy answer?",
        "errors": [],
        "reason": "UNEXPECTED_ANSWER",
        "request_id": undefined,
        "retry_after": undefined,
        "status": 502,
      }
    `)
  })

  test('a login page with status 200', async () => {
    const failure = await answered((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' })
      response.end('<form>')
    })
    expect(failure).toMatchInlineSnapshot(`
      {
        "code": "UNKNOWN",
        "detail": "http://host/v1/c/GetWallet answered HTTP 200 with text/html instead of JSON of the service: <form> Is base_url right, or did a proxy answer?",
        "errors": [],
        "reason": "UNEXPECTED_ANSWER",
        "request_id": undefined,
        "retry_after": undefined,
        "status": 200,
      }
    `)
  })

  test('nothing at all', async () => {
    const failure = await answered((_, response) => {
      response.writeHead(504, { 'x-request-id': 'proxy-1' })
      response.end()
    })
    expect(failure).toMatchInlineSnapshot(`
      {
        "code": "DEADLINE_EXCEEDED",
        "detail": "http://host/v1/c/GetWallet answered HTTP 504 without a body. Is base_url right, or did a proxy answer?",
        "errors": [],
        "reason": "UNEXPECTED_ANSWER",
        "request_id": "proxy-1",
        "retry_after": undefined,
        "status": 504,
      }
    `)
  })

  test('a redirect is not followed', async () => {
    const failure = await answered((_, response) => {
      response.writeHead(301, { location: 'https://host/' })
      response.end()
    })
    expect(failure).toMatchInlineSnapshot(`
      {
        "code": "UNKNOWN",
        "detail": "http://host/v1/c/GetWallet redirects to https://host/ (HTTP 301). Is base_url right, or did a proxy answer?",
        "errors": [],
        "reason": "UNEXPECTED_ANSWER",
        "request_id": undefined,
        "retry_after": undefined,
        "status": 301,
      }
    `)
  })

  test('JSON of another server', async () => {
    const failure = await answered((_, response) => reply(response, 403, { message: 'Forbidden' }))
    expect(failure).toMatchInlineSnapshot(`
      {
        "code": "PERMISSION_DENIED",
        "detail": "http://host/v1/c/GetWallet answered HTTP 403 with application/json instead of JSON of the service: {"message":"Forbidden"} Is base_url right, or did a proxy answer?",
        "errors": [],
        "reason": "UNEXPECTED_ANSWER",
        "request_id": undefined,
        "retry_after": undefined,
        "status": 403,
      }
    `)
  })

  test('JSON that is not an object', async () => {
    expect((await answered((_, response) => reply(response, 200, []))).reason).toBe(
      'UNEXPECTED_ANSWER',
    )
  })
})

describe('no answer', () => {
  test('a closed port', async () => {
    const port = await closedPort()
    const client = createClient({ base_url: `http://127.0.0.1:${port}`, ...credential })
    expect(await failureOf(client.c.ListWallets())).toEqual({
      status: 0,
      code: 'UNAVAILABLE',
      reason: 'NETWORK_FAILED',
      detail: `No answer from http://127.0.0.1:${port}/v1/c/ListWallets: connect ECONNREFUSED 127.0.0.1:${port}.`,
      request_id: undefined,
      errors: [],
      retry_after: undefined,
    })
  })

  test('the connection breaks in the middle of the answer', async () => {
    const failure = await answered((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
      response.write('{"wallet":')
      setTimeout(() => response.destroy(), 20)
    })
    expect(failure).toMatchObject({ status: 0, code: 'UNAVAILABLE', reason: 'NETWORK_FAILED' })
  })

  test('none in time', async () => {
    const { base_url } = await listen(() => {})
    const client = createClient({ base_url, ...credential, timeout_ms: 50 })
    expect(await failureOf(client.c.ListWallets())).toMatchObject({
      status: 0,
      code: 'DEADLINE_EXCEEDED',
      reason: 'TIMED_OUT',
      detail: `No answer from ${base_url}/v1/c/ListWallets within 50 ms. It is not known whether the call took effect.`,
    })
  })

  test('only half of it in time', async () => {
    const { base_url } = await listen((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write('{"wallets":')
    })
    const client = createClient({ base_url, ...credential, timeout_ms: 50 })
    expect((await failureOf(client.c.ListWallets())).reason).toBe('TIMED_OUT')
  })
})

describe('an aborted call', () => {
  test('rejects with the reason of the signal', async () => {
    const controller = new AbortController()
    const { base_url } = await listen(() => controller.abort('changed my mind'))
    const client = createClient({ base_url, ...credential })
    const call = client.c.ListWallets({}, { signal: controller.signal })
    await expect(call).rejects.toBe('changed my mind')
  })

  test('is not sent when the signal is aborted already', async () => {
    const { base_url, seen } = await listen((_, response) => reply(response, 200, {}))
    const client = createClient({ base_url, ...credential })
    const call = client.c.ListWallets({}, { signal: AbortSignal.abort('too late') })
    await expect(call).rejects.toBe('too late')
    expect(seen).toEqual([])
  })
})
