import { expect, test } from 'vitest'
import { findingText } from './finding.ts'
import { checkNode } from './machine.ts'

test('the version of Node', () => {
  expect(checkNode('26.10.0')).toEqual({ check: 'node', status: 'ok', detail: 'Node 26.10.0' })
  expect(checkNode('20.20.2')).toMatchObject({ status: 'failure' })
})

test('a fix is printed below its finding', () => {
  const text = findingText(checkNode('20.20.2'))
  expect(text).toContain('Node 20.20.2 is too old.\n')
  expect(text).toMatch(/→ Use Node 26 or newer/)
})
