import { mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { boundLogFile, readFailure } from './log-file.ts'

const root = await mkdtemp(join(tmpdir(), 'portolan-log-'))
afterAll(() => rm(root, { recursive: true, force: true }))

test('a log that grew too long moves to one older file', async () => {
  const path = join(root, 'long.log')
  await writeFile(path, 'x'.repeat(10 * 1024 * 1024 + 1))
  await boundLogFile(path)
  expect((await stat(path)).size).toBe(0)
  expect((await stat(`${path}.1`)).size).toBe(10 * 1024 * 1024 + 1)
  await writeFile(path, 'short')
  await boundLogFile(path)
  expect(await readFile(path, 'utf8')).toBe('short')
})

test('a link is not followed', async () => {
  const target = join(root, 'target')
  await writeFile(target, 'x'.repeat(11 * 1024 * 1024))
  await symlink(target, join(root, 'link.log'))
  await expect(boundLogFile(join(root, 'link.log'))).rejects.toThrow('ELOOP')
  expect((await stat(target)).size).toBe(11 * 1024 * 1024)
})

test('a failure is reported with its own lines, not with earlier ones', async () => {
  const path = join(root, 'failure.log')
  const before = 'FATAL:  yesterday\n'
  await writeFile(
    path,
    `${before}LOG:  starting\nFATAL:  no space\nHINT:  make some\nFATAL:  the database system is not yet accepting connections\n`,
  )
  expect(await readFailure(path, before.length)).toBe('FATAL:  no space\nHINT:  make some')
  expect(await readFailure(path, (await stat(path)).size)).toBe('')
})
