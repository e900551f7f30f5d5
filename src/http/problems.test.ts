import { describe, expect, it } from 'vitest'
import { errors, OperationError, type Reason } from '../contract/errors/errors.ts'
import { type Log, silentLog } from '../lib/log.ts'
import { problemResponse, toOperationError } from './problems.ts'

const recording = () => {
  const lines: { level: string; fields: object; message: string }[] = []
  const at = (level: string) => (fields: object, message: string) =>
    lines.push({ level, fields, message })
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { log, lines }
}

describe('a problem', () => {
  it.each(Object.keys(errors) as Reason[])(
    'of the reason %s has the members of RFC 9457',
    (reason) => {
      const { status, headers, body } = problemResponse(new OperationError(reason), 'r-1')
      const row = errors[reason]
      expect(status).toBe(row.status)
      expect(headers).toEqual({
        'content-type': 'application/problem+json',
        ...(status === 401 && { 'www-authenticate': 'HMAC-SHA256 realm="operations"' }),
        ...((status === 429 || status === 503) && { 'retry-after': '1' }),
      })
      expect(JSON.parse(body)).toEqual({
        type: `/docs/errors/${reason}`,
        title: row.title,
        status: row.status,
        detail: `${row.title}.`,
        code: row.code,
        reason,
        request_id: 'r-1',
      })
    },
  )

  it('carries bad fields, further members, headers and the time to wait', () => {
    const fields = [{ field: 'a[0]', reason: 'REQUIRED', detail: 'Is required.' }]
    const error = new OperationError('RATE_LIMITED', {
      detail: 'Too much.',
      errors: fields,
      extra: { server_time: '1' },
      headers: { allow: 'POST' },
      retryAfter: 7,
    })
    const { headers, body } = problemResponse(error, 'r-1')
    expect(headers).toMatchObject({ allow: 'POST', 'retry-after': '7' })
    expect(JSON.parse(body)).toMatchObject({
      detail: 'Too much.',
      errors: fields,
      server_time: '1',
    })
  })

  it('cannot be given another content type', () => {
    const headers = { 'content-type': 'text/html' }
    const problem = problemResponse(new OperationError('INTERNAL', { headers }), 'r-1')
    expect(problem.headers['content-type']).toBe('application/problem+json')
  })
})

describe('an error that is not a failure of an operation', () => {
  it('reports a full disk, which the operator has to fix', () => {
    const { log, lines } = recording()
    const error = Object.assign(new Error('could not extend file'), { code: '53100' })
    const { reason, message, retryAfter } = toOperationError(error, log, {
      request_id: 'r-1',
      client: '192.0.2.1',
    })
    expect({ reason, message, retryAfter }).toEqual({
      reason: 'DATABASE_UNAVAILABLE',
      message: 'The disk of the database is full: nothing was changed.',
      retryAfter: 10,
    })
    expect(lines).toMatchObject([{ level: 'error', message: 'the disk of the database is full' }])
  })

  it('becomes INTERNAL, reveals nothing to the caller, and is in the log under the request id', () => {
    const { log, lines } = recording()
    const thrown = new Error('password of the database is hunter2')
    const error = toOperationError(thrown, log, { request_id: 'r-9', client: '192.0.2.1' })
    const { status, body } = problemResponse(error, 'r-9')
    expect(status).toBe(500)
    expect(body).not.toContain('hunter2')
    expect(body).not.toContain('problems.test')
    expect(lines).toEqual([
      {
        level: 'error',
        fields: { err: thrown, request_id: 'r-9', client: '192.0.2.1' },
        message: 'request failed',
      },
    ])
  })

  it.each([undefined, null, 'text', 7, {}])(
    'becomes INTERNAL even when %s was thrown',
    (thrown) => {
      expect(
        toOperationError(thrown, silentLog, { request_id: 'r', client: '192.0.2.1' }).reason,
      ).toBe('INTERNAL')
    },
  )

  it('becomes DATABASE_UNAVAILABLE with a time to wait when the database is unreachable', () => {
    const { log, lines } = recording()
    const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
    const error = toOperationError(refused, log, { request_id: 'r-2', client: '192.0.2.1' })
    expect([error.reason, error.retryAfter]).toEqual(['DATABASE_UNAVAILABLE', 1])
    expect(lines.map(({ level }) => level)).toEqual(['warn'])
  })

  it('stays what it is when it is a failure of an operation, and is not logged', () => {
    const { log, lines } = recording()
    const error = new OperationError('DOMAIN_TAKEN')
    expect(toOperationError(error, log, { request_id: 'r', client: '192.0.2.1' })).toBe(error)
    expect(lines).toEqual([])
  })
})
