import { expect, test } from 'vitest'
import { OperationError } from '../contract/errors/errors.ts'
import { CliError } from './cli-error.ts'
import { explain } from './explain.ts'

const error = (fields: object, message = 'raw') => Object.assign(new Error(message), fields)

test('errors that are sentences stay as they are', () => {
  expect(explain(new CliError('It is so.'))).toBe('It is so.')
  expect(explain(new OperationError('DOMAIN_TAKEN'))).toBe('Another organization has this domain.')
})

test('bad fields are listed below the message', () => {
  const errors = [
    { field: 'domain', reason: 'REQUIRED', detail: 'Is required.' },
    { field: '', reason: 'INVALID_TYPE', detail: 'Must be an object.' },
  ]
  expect(explain(new OperationError('INVALID_REQUEST', { detail: 'No.', errors }))).toBe(
    'No.\n  domain: Is required.\n  request: Must be an object.',
  )
})

test.each([
  [
    { code: 'EADDRINUSE', syscall: 'listen', address: '::1', port: 4000 },
    'Another program is listening on ::1:4000 already.',
  ],
  [
    { code: 'EACCES', syscall: 'listen', address: '0.0.0.0', port: 80 },
    'This user may not listen on 0.0.0.0:80.',
  ],
  [
    { code: 'EADDRNOTAVAIL', syscall: 'listen', address: '10.9.9.9', port: 80 },
    'The service cannot listen on 10.9.9.9:80 (EADDRNOTAVAIL). Check server.host.',
  ],
  [
    { code: 'ECONNREFUSED', syscall: 'connect', address: '10.0.0.1', port: 5432 },
    'The database at 10.0.0.1:5432 is unreachable (ECONNREFUSED).',
  ],
  [
    { code: '53100', severity: 'ERROR' },
    'The disk of the database is full: nothing was changed. Make room, and run the command again.',
  ],
  [{ code: '28P01', severity: 'FATAL' }, 'The database refuses: raw.'],
  [{ code: '57P03', severity: 'FATAL' }, 'The database is unreachable (57P03).'],
  [
    { code: 'EACCES', syscall: 'mkdir', path: '/srv/data' },
    '/srv/data cannot be used (mkdir): this user may not.',
  ],
  [{ code: 'ENOSPC', syscall: 'write' }, 'The system refuses to write: the disk is full.'],
])('%j', (fields, text) => {
  expect(explain(error(fields))).toContain(text)
})

test('a host with several addresses', () => {
  const each = ['::1', '127.0.0.1'].map((address) =>
    error({ code: 'ECONNREFUSED', syscall: 'connect', address, port: 5432 }),
  )
  const all = Object.assign(new AggregateError(each), { code: 'ECONNREFUSED' })
  expect(explain(all)).toContain('The database at ::1:5432 is unreachable (ECONNREFUSED).')
})

test('an internal error is reported as one', () => {
  expect(explain(new TypeError('x is not a function'))).toBeUndefined()
  expect(explain('text')).toBeUndefined()
  expect(explain(undefined)).toBeUndefined()
})
