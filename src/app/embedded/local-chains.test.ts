import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { missingLocalChains } from './local-chains.ts'

test('local chains need their program and its packages', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-local-chains-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const program = join(folder, 'keeper.ts')
  expect(missingLocalChains(program)).toMatch(/^Local chains are not installed; /)
  writeFileSync(program, '')
  expect(missingLocalChains(program)).toMatch(/^Local chains are not installed; /)
  mkdirSync(join(folder, 'node_modules/@ton/sandbox'), { recursive: true })
  writeFileSync(join(folder, 'node_modules/@ton/sandbox/index.js'), '')
  expect(missingLocalChains(program)).toBeUndefined()
})

test('this checkout has them', () => {
  expect(missingLocalChains()).toBeUndefined()
})
