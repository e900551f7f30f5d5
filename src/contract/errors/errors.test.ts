import { describe, expect, test } from 'vitest'
import { errors, OperationError } from './errors.ts'
import type { ErrorRow } from './row.ts'

const rows: [string, ErrorRow][] = Object.entries(errors)

/** The canonical codes that each HTTP status may carry (docs/decisions/http.md). */
const codesOf: Record<number, string[]> = {
  400: ['INVALID_ARGUMENT'],
  401: ['UNAUTHENTICATED'],
  403: ['PERMISSION_DENIED'],
  404: ['NOT_FOUND'],
  405: ['INVALID_ARGUMENT'],
  408: ['DEADLINE_EXCEEDED'],
  // ABORTED: another request is under way, and the same one later can succeed.
  409: ['ALREADY_EXISTS', 'FAILED_PRECONDITION', 'ABORTED'],
  410: ['OUT_OF_RANGE'],
  413: ['INVALID_ARGUMENT'],
  415: ['INVALID_ARGUMENT'],
  421: ['FAILED_PRECONDITION'],
  426: ['FAILED_PRECONDITION'],
  429: ['RESOURCE_EXHAUSTED'],
  431: ['INVALID_ARGUMENT'],
  500: ['INTERNAL'],
  501: ['UNIMPLEMENTED'],
  503: ['UNAVAILABLE'],
  504: ['DEADLINE_EXCEEDED'],
}

describe.each(rows)('%s', (reason, row) => {
  test('has a code that fits its status', () => {
    expect(codesOf[row.status]).toContain(row.code)
  })

  test('has a title, and a help of whole sentences', () => {
    expect(reason).toMatch(/^[A-Z]+(_[A-Z]+)*$/)
    expect(row.title).toMatch(/^[A-Z].*[^.]$/)
    expect(row.help).toMatch(/^[A-Z`].*\.$/)
  })

  test('has a JSON-RPC code of the gateway', () => {
    expect([-32700, -32600, -32601, -32602, -32603, -32005, -32002, -32000]).toContain(row.rpc)
  })

  test('says the truth about a retry', () => {
    if (row.status === 429 || row.status === 503) expect(row.retry).toBe('after')
    else expect(row.retry).not.toBe('after')
    if (row.code === 'ABORTED') expect(row.retry).toBe('later')
    else if (row.status < 500 && row.status !== 429 && row.status !== 408)
      expect(row.retry).toBe('never')
  })

  test('is -32005 or -32603 where clients of the gateway shall try again', () => {
    if (row.retry === 'after') expect([-32005, -32603]).toContain(row.rpc)
  })
})

test('a not-found reason names what was not found', () => {
  for (const [reason, { status }] of rows)
    if (status === 404) expect(reason).toMatch(/^[A-Z_]+_NOT_FOUND$/)
})

describe('OperationError', () => {
  test('says the title where it is given no detail', () => {
    const error = new OperationError('DOMAIN_TAKEN')
    expect({ ...error, message: error.message }).toMatchInlineSnapshot(`
      {
        "errors": [],
        "extra": {},
        "headers": {},
        "message": "Another organization has this domain.",
        "name": "OperationError",
        "reason": "DOMAIN_TAKEN",
        "retryAfter": undefined,
      }
    `)
  })

  test('keeps what it is given', () => {
    const cause = new Error('inside')
    const error = new OperationError('RATE_LIMITED', {
      detail: 'Wait.',
      retryAfter: 3,
      headers: { allow: 'POST' },
      errors: [{ field: 'a', reason: 'REQUIRED', detail: 'Is required.' }],
      cause,
    })
    expect(error.cause).toBe(cause)
    expect({ ...error, message: error.message }).toMatchInlineSnapshot(`
      {
        "errors": [
          {
            "detail": "Is required.",
            "field": "a",
            "reason": "REQUIRED",
          },
        ],
        "extra": {},
        "headers": {
          "allow": "POST",
        },
        "message": "Wait.",
        "name": "OperationError",
        "reason": "RATE_LIMITED",
        "retryAfter": 3,
      }
    `)
  })
})
