import { spawnSync } from 'node:child_process'
import { chmod, chown, lstat, mkdir, readdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ownCompileCache } from '../../bin/compile-cache.js'
import { freshFolder } from './portolan.ts'

const isRoot = process.getuid?.() === 0

const fresh = async () => {
  const base = join(await freshFolder(), 'cache')
  await mkdir(base, { mode: 0o700 })
  const own = join(base, 'portolan')
  return { base, own, folder: join(own, 'compile-cache'), env: { XDG_CACHE_HOME: base } }
}

test('the cache of compiled code is a folder of the user alone', async () => {
  const { env, own, folder } = await fresh()
  expect(ownCompileCache(env)).toBe(folder)
  for (const path of [own, folder]) expect((await lstat(path)).mode & 0o777).toBe(0o700)
  expect(ownCompileCache(env)).toBe(folder)
})

test('there is no cache where another user could put code', async () => {
  const open = await fresh()
  await mkdir(open.folder, { recursive: true })
  await chmod(open.folder, 0o777)
  expect(ownCompileCache(open.env)).toBeUndefined()

  const openAbove = await fresh()
  await mkdir(openAbove.own)
  await chmod(openAbove.own, 0o770)
  expect(ownCompileCache(openAbove.env)).toBeUndefined()

  const shared = await fresh()
  await chmod(shared.base, 0o1777)
  expect(ownCompileCache(shared.env)).toBeUndefined()
})

test('there is no cache behind a link', async () => {
  const linked = await fresh()
  const elsewhere = await freshFolder()
  await mkdir(linked.own, { mode: 0o700 })
  await symlink(elsewhere, linked.folder)
  expect(ownCompileCache(linked.env)).toBeUndefined()

  const linkedAbove = await fresh()
  await symlink(elsewhere, linkedAbove.own)
  expect(ownCompileCache(linkedAbove.env)).toBeUndefined()
})

test('there is no cache in a folder of another user', async () => {
  const { env } = await fresh()
  expect(ownCompileCache(env, 12_345)).toBeUndefined()
})

test.skipIf(!isRoot)('nor in one that another user made first', async () => {
  const taken = await fresh()
  await mkdir(taken.own, { mode: 0o700 })
  await chown(taken.own, 12_345, 12_345)
  expect(ownCompileCache(taken.env)).toBeUndefined()
})

test('there is no cache where none can be made', () => {
  expect(ownCompileCache({ XDG_CACHE_HOME: '/dev/null/cache' })).toBeUndefined()
})

test('the program uses the folder of the user, and not the shared one for temporary files', async () => {
  const { env, folder, base } = await fresh()
  const temporary = await freshFolder()
  const program = join(import.meta.dirname, '../../bin/portolan.js')
  const { PATH, HOME } = process.env
  const surroundings = { PATH, HOME, TMPDIR: temporary }
  const run = (more: object) =>
    spawnSync(process.execPath, [program, '--help'], { env: { ...surroundings, ...more } })
  expect(run(env).status).toBe(0)
  expect(await readdir(folder)).not.toEqual([])
  expect(await readdir(temporary)).toEqual([])
  await chmod(base, 0o777)
  expect(run(env).status).toBe(0)
  expect(await readdir(temporary)).toEqual([])
})
