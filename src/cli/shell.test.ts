import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { printJson, type Shell } from './shell.ts'

test('JSON is printed with all digits of its integers', () => {
  const stdout = new PassThrough()
  printJson({ stdout } as unknown as Shell, { difficulty: 13787566370124293333n, size: 1 })
  expect(stdout.read().toString()).toBe(
    '{\n  "difficulty": 13787566370124293333,\n  "size": 1\n}\n',
  )
})
