import { describe, expect, it } from 'vitest'
import { createCheck } from '../../src/contract/validate.ts'
import { operations, validRequest } from './sample-requests.ts'

describe('the sample requests that other suites build on', () => {
  it('cover the 95 operations of the specification and the extensions', () => {
    const extensions = operations.filter(([, { row }]) => row.extension)
    expect(operations.length - extensions.length).toBe(95)
    expect(operations.length).toBe(new Set(operations.map(([name]) => name)).size)
  })

  it.each(operations)('are valid for %s', (_, entry) => {
    const request = validRequest(entry)
    expect(createCheck(entry)(request)).toMatchObject(request)
  })
})
