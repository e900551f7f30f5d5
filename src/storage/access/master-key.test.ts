import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { loadMasterKeys, MasterKeyError } from './master-key.ts'

/** The only key of a source. */
const loadMasterKey = async (source: Parameters<typeof loadMasterKeys>[0]) => {
  const [key, ...others] = await loadMasterKeys(source)
  expect(others).toEqual([])
  return key
}

const directory = await mkdtemp(join(tmpdir(), 'master-key-'))
afterAll(() => rm(directory, { recursive: true }))

test('a value is read as hex or base64, with white space around', async () => {
  const key = randomBytes(32)
  expect(await loadMasterKey({ value: ` ${key.toString('hex').toUpperCase()}\n` })).toEqual(key)
  expect(await loadMasterKey({ value: key.toString('base64') })).toEqual(key)
})

test.each(['', 'secret', 'ab'.repeat(31), 'zz'.repeat(32)])('%j is refused', async (value) => {
  await expect(loadMasterKey({ value })).rejects.toThrow(MasterKeyError)
})

test('several keys are on separate lines, the sealing key first', async () => {
  const keys = [randomBytes(32), randomBytes(32)]
  const value = keys.map((key) => key.toString('hex')).join('\n\n')
  expect(await loadMasterKeys({ value: `${value}\r\n` })).toEqual(keys)
  await expect(loadMasterKeys({ value: `${value}\nzz` })).rejects.toThrow(/not a master key/)
  const nine = Array.from({ length: 9 }, () => randomBytes(32).toString('hex')).join('\n')
  await expect(loadMasterKeys({ value: nine })).rejects.toThrow('more than 8')
})

test('a refusal never shows the given value', async () => {
  const value = `${'ab'.repeat(32)}ff`
  const error = await loadMasterKey({ value }).catch((reason: Error) => reason)
  expect(String(error)).not.toContain('abab')
})

test('a missing file is an error, or is made once and for its owner only', async () => {
  const file = join(directory, 'new', 'master.key')
  await expect(loadMasterKey({ file })).rejects.toThrow(`${file} does not exist`)
  const keys = await Promise.all(
    Array.from({ length: 20 }, () => loadMasterKey({ file, create: true })),
  )
  for (const key of keys) expect(key).toEqual(keys[0])
  expect(keys[0]).toHaveLength(32)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await readdir(join(directory, 'new'))).toEqual(['master.key'])
  expect(await loadMasterKey({ file })).toEqual(keys[0])
})

test('a file with something else in it is left alone', async () => {
  const file = join(directory, 'empty.key')
  await writeFile(file, '')
  await expect(loadMasterKey({ file, create: true })).rejects.toThrow(/not a master key/)
})

test('a path that cannot be read says why', async () => {
  await expect(loadMasterKey({ file: directory })).rejects.toThrow('EISDIR')
})
