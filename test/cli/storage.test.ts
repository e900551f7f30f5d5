import { copyFile, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { databasePid, freshFolder, runCommand, startService } from './portolan.ts'

test('migrates, and lists missing migrations', async () => {
  const dataDir = join(await freshFolder(), 'data')
  const before = await runCommand(['migrate', '--status'], { dataDir })
  expect(before.stdout).toMatch(/^0001-installation +missing$/m)
  expect((await runCommand(['migrate'], { dataDir })).stdout).toMatch(
    /^0001-installation applied$/m,
  )
  const after = await runCommand(['migrate', '--status'], { dataDir })
  expect(after.stdout).toMatch(/^0001-installation +applied$/m)
  expect(after.stdout).not.toContain('missing')
  expect((await runCommand(['migrate'], { dataDir })).stdout).toBe(
    'The database has the schema of this version already.\n',
  )
  const distributed = await runCommand(['migrate', '--distribute'], { dataDir })
  expect(distributed.code).toBe(1)
  expect(distributed.stderr).toMatch(/^The database has no Citus\. Run "create extension citus"/)
  expect(await databasePid(dataDir)).toBeUndefined()
})

test('moves an installation, beside the running service, with its keys', async () => {
  const folder = await freshFolder()
  const [from, to] = [join(folder, 'from'), join(folder, 'to')]
  const archive = join(folder, 'backup.portolan')
  const service = await startService(from)
  const exported = await runCommand(['export', archive], { dataDir: from })
  expect(exported.code).toBe(0)
  expect(exported.stderr).toMatch(/^Exported \d+ tables, \d+ rows, 0\.0 MiB, schema version/)
  expect(exported.stderr).toContain(join(from, 'master.key'))
  expect((await stat(archive)).mode & 0o777).toBe(0o600)
  expect(await readdir(folder)).not.toContain('backup.portolan.partial')
  const again = await runCommand(['export', archive], { dataDir: from })
  expect(again).toMatchObject({ code: 1, stdout: '' })
  expect(again.stderr).toContain('already exists')
  await service.stop()

  const imported = await runCommand(['import', archive], { dataDir: to })
  expect(imported.code).toBe(0)
  expect(imported.stderr).toContain(`put the master key of the old installation into ${to}`)
  await copyFile(join(from, 'master.key'), join(to, 'master.key'))
  const twice = await runCommand(['import', archive], { dataDir: to })
  expect(twice.code).toBe(1)
  expect(twice.stderr).toMatch(/^An archive is imported into an empty database only/)

  const moved = await startService(to)
  expect(moved.connection.admin?.api_key).toBe(service.connection.admin?.api_key)
  const args = ['call', 'admin', 'GetOrganizationByDomain', '{"domain":"demo"}']
  expect((await runCommand(args, { dataDir: to })).code).toBe(0)
  await moved.stop()
})

test('refuses a file that is not an archive, and creates no database for a missing file', async () => {
  const folder = await freshFolder()
  const dataDir = join(folder, 'data')
  const missing = await runCommand(['import', 'none'], { dataDir, cwd: folder })
  expect(missing).toMatchObject({ code: 1, stdout: '' })
  expect(missing.stderr).toBe(`${folder}/none cannot be used (open): it does not exist.\n`)
  expect(await readdir(folder)).toEqual([])
  const nonsense = await runCommand(['import', '-'], { dataDir, input: 'nonsense' })
  expect(nonsense.code).toBe(1)
  expect(nonsense.stderr).not.toMatch(/^\s+at /m)
  expect(nonsense.stderr).toMatchInlineSnapshot(`
    "The file is not a Portolan archive, or its beginning is damaged.
    "
  `)
})
