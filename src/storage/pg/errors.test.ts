import { describe, expect, test } from 'vitest'
import { isAboutRows, isDatabaseUnavailable, isUniqueViolation } from './errors.ts'

const failure = (fields: object, message = 'failed') => Object.assign(new Error(message), fields)

describe('isDatabaseUnavailable', () => {
  test.each([
    failure({ code: 'ECONNREFUSED' }),
    failure({ code: 'ECONNRESET' }),
    failure({ code: 'ENOENT', syscall: 'connect' }),
    failure({ code: '57P01' }),
    failure({ code: '57P02' }),
    failure({ code: '57P03' }),
    failure({ code: '57014' }),
    failure({ code: '25006' }),
    failure({ code: '40001' }),
    failure({ code: '40P01' }),
    failure({ code: '08006' }),
    failure({ code: '53300' }),
    failure({ code: '53100' }),
    failure({}, 'timeout exceeded when trying to connect'),
    failure({}, 'Connection terminated unexpectedly'),
    failure({}, 'Connection terminated due to connection timeout'),
    failure({}, 'Client has encountered a connection error and is not queryable'),
    new AggregateError([failure({ code: 'ECONNREFUSED' })]),
    new Error('wrapped', { cause: failure({ code: '57P01' }) }),
  ])('yes: %o', (error) => {
    expect(isDatabaseUnavailable(error)).toBe(true)
  })

  test.each([
    undefined,
    'ECONNREFUSED',
    new Error('anything'),
    failure({ code: 'ENOENT', syscall: 'open' }),
    failure({ code: '23505' }),
    failure({ code: '22P02' }, 'Connection terminated'),
    failure({ code: '42P01' }),
  ])('no: %o', (error) => {
    expect(isDatabaseUnavailable(error)).toBe(false)
  })
})

test('errors about the rows of a statement are distinguished from those of the server, the schema and locks', () => {
  const codes = [
    '22P05',
    '23514',
    '54000',
    'P0001',
    'XX000',
    '42501',
    '42P01',
    '55P03',
    '53200',
    '57014',
  ]
  expect(codes.filter((code) => isAboutRows(failure({ code })))).toEqual(codes.slice(0, 5))
  expect(isAboutRows(new RangeError('Invalid string length'))).toBe(true)
  expect(isAboutRows(failure({ code: 'ECONNRESET' }))).toBe(false)
})

test('unique violations are recognized by code and constraint', () => {
  const unique = failure({ code: '23505', constraint: 'organization_domain_key' })
  expect(isUniqueViolation(unique)).toBe(true)
  expect(isUniqueViolation(unique, 'organization_domain_key')).toBe(true)
  expect(isUniqueViolation(unique, 'other')).toBe(false)
  expect(isUniqueViolation(failure({ code: '23503' }))).toBe(false)
  expect(isUniqueViolation(undefined)).toBe(false)
})
