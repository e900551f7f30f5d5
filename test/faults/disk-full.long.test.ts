import { execFileSync } from 'node:child_process'
import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { connectionOf, layoutOf } from '../../src/storage/embedded/layout.ts'
import { freshFolder, portolan, startService } from '../cli/portolan.ts'
import { waitFor } from '../helpers/wait-for.ts'

// A disk of its own can be mounted by root only.
const canMount = process.platform === 'linux' && process.getuid?.() === 0

async function mountSmallDisk(): Promise<string> {
  const disk = join(await freshFolder(), 'disk')
  await mkdir(disk)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=96m,mode=711', 'tmpfs', disk])
  onTestFinished(() => {
    execFileSync('umount', ['--lazy', disk])
  })
  return disk
}

/** Takes all the room that is left; returns the way to give it back. */
async function fill(disk: string): Promise<() => Promise<void>> {
  const path = join(disk, 'filler')
  await using file = await open(path, 'w')
  const block = Buffer.alloc(1024 * 1024)
  try {
    for (;;) await file.appendFile(block)
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENOSPC' })
  }
  return () => rm(path)
}

/** Writes to the log of the database until there is no room for it, which ends the database. */
async function exhaust(dataDir: string): Promise<void> {
  const client = new pg.Client(connectionOf(layoutOf(dataDir)))
  client.on('error', () => {})
  await client.connect()
  const text = `select pg_logical_emit_message(true, 'x', string_agg(md5(i::text), ''))
    from generate_series(1, 30000) as i`
  try {
    for (let left = 300; left > 0; left--) await client.query(text)
  } finally {
    await client.end().catch(() => {})
  }
}

test.skipIf(!canMount)(
  'a full disk is reported, loses nothing, and is over when there is room again',
  { timeout: 240_000 },
  async () => {
    const disk = await mountSmallDisk()
    const dataDir = join(disk, 'data')
    const service = await startService(dataDir)
    const { base_url } = service.connection
    const ready = async () => (await fetch(`${base_url}/ready`)).status
    const create = (domain: string) => portolan(['organizations', 'create', domain], { dataDir })
    expect((await create('before')).code).toBe(0)

    const makeRoom = await fill(disk)
    await expect(exhaust(dataDir)).rejects.toThrow()
    await waitFor('the service says that it is not ready', async () => (await ready()) === 503)
    const call = ['call', 'admin', 'GetOrganizationByDomain', '{"domain":"before"}']
    expect((await portolan(call, { dataDir })).stderr).toContain('DATABASE_UNAVAILABLE (503)')
    const { code, stdout } = await portolan(['doctor'], { dataDir })
    expect(code).toBe(1)
    expect(stdout).toMatch(/✗ disk .*\n.*Free some space/)

    await makeRoom()
    const longWait = { timeoutMs: 120_000 }
    await waitFor('the database is back', async () => (await ready()) === 200, longWait)
    expect(service.output()).toContain('No space left on device')
    await waitFor(
      'what was stored is there',
      async () => (await portolan(call, { dataDir })).code === 0,
      longWait,
    )
    expect((await create('after')).code).toBe(0)
    expect((await service.stop()).code).toBe(0)
  },
)
