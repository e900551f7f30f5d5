import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { findingText } from './finding.ts'
import { checkNode } from './machine.ts'

test('the version of Node', () => {
  expect(checkNode('26.10.0')).toEqual({ check: 'node', status: 'ok', detail: 'Node 26.10.0' })
  expect(checkNode('20.20.2')).toMatchObject({ status: 'failure' })
})

test('a fix is printed below its finding', () => {
  const text = findingText(checkNode('20.20.2'), 80)
  expect(text).toContain('Node 20.20.2 is too old.\n')
  expect(text).toMatch(/→ Use Node 26 or newer/)
})

test('a finding that is wider than the terminal continues below its beginning', () => {
  const text = findingText({ check: 'nodes', status: 'ok', detail: 'final block 45, 969 ms' }, 34)
  expect(stripVTControlCharacters(text)).toBe(
    `✓ nodes           final block 45,\n${' '.repeat(18)}969 ms`,
  )
})
