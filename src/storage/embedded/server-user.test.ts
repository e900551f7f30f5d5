import { chmod, mkdir, mkdtemp, realpath, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { defaultDataDir, ensureDataDir } from './data-dir.ts'
import { closedDirectory, findServerUser } from './server-user.ts'

const root = await realpath(await mkdtemp(join(tmpdir(), 'portolan-user-')))
await chmod(root, 0o755)
afterAll(() => rm(root, { recursive: true, force: true }))

const otherUser = { uid: 54_321, gid: 54_321 }
const self = { uid: process.getuid?.() ?? -1, gid: process.getgid?.() ?? -1 }

const directory = async (name: string, mode: number): Promise<string> => {
  await mkdir(join(root, name))
  await chmod(join(root, name), mode)
  return join(root, name)
}
const open = await directory('open', 0o755)
const closed = await directory('closed', 0o700)
const groupOnly = await directory('group', 0o610)

describe('closedDirectory', () => {
  test('names the first directory that the user may not enter', async () => {
    expect(await closedDirectory(open, otherUser)).toBeUndefined()
    expect(await closedDirectory(join(closed, 'not/yet/there'), otherUser)).toBe(closed)
    expect(await closedDirectory(closed, self)).toBeUndefined()
  })

  test('knows owner, group and others apart', async () => {
    expect(await closedDirectory(groupOnly, { uid: 54_321, gid: self.gid })).toBeUndefined()
    expect(await closedDirectory(groupOnly, self)).toBe(groupOnly)
  })

  test('follows links', async () => {
    await symlink(closed, join(root, 'link'))
    expect(await closedDirectory(join(root, 'link'), otherUser)).toBe(closed)
  })
})

describe('defaultDataDir', () => {
  test('is .data in the working directory', async () => {
    expect(await defaultDataDir({ cwd: closed, uid: 1000, env: {} })).toBe(join(closed, '.data'))
    expect(await defaultDataDir({ cwd: open, uid: 0, env: {} })).toBe(join(open, '.data'))
  })

  test('is a reachable place for root in a closed directory', async () => {
    const { uid } = await findServerUser()
    const expected = uid === self.uid ? join(closed, '.data') : '/var/lib/portolan'
    expect(await defaultDataDir({ cwd: closed, uid: 0, env: {} })).toBe(expected)
  })

  test('is the value of the environment', async () => {
    const env = { PORTOLAN_DATA_DIR: 'here' }
    expect(await defaultDataDir({ cwd: open, uid: 0, env })).toBe(join(open, 'here'))
  })
})

test('ensureDataDir makes the last directory private, and only that', async () => {
  const path = await ensureDataDir(join(root, 'a/b'))
  expect((await stat(path)).mode & 0o777).toBe(0o700)
  expect((await stat(join(root, 'a'))).mode & 0o777).toBe(0o777 & ~process.umask())
  expect(await ensureDataDir(path)).toBe(path)
})
