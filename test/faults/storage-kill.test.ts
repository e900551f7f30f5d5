import { chmod, chown, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { layoutOf } from '../../src/storage/embedded/layout.ts'
import { closedDirectory } from '../../src/storage/embedded/server-user.ts'
import { embeddedBinaries } from '../helpers/postgres.ts'
import { endWriter, runCampaign, startWriter, type Writer } from './storage-kill.ts'

const isRoot = process.getuid?.() === 0
const unprivileged = { uid: 65534, gid: 65534 }
const reachable = !(await closedDirectory(process.execPath, unprivileged))

test('nothing acknowledged is lost or doubled by kills at random moments', async () => {
  const outcome = await runCampaign({ kills: 4, seed: 42, binaries: await embeddedBinaries() })
  expect(outcome).toMatchObject({ lost: 0, doubled: 0 })
  expect(outcome.acknowledged).toBeGreaterThan(4)
})

describe('a data directory', () => {
  let parent: string
  const writers: Writer[] = []

  beforeEach(async () => {
    parent = await realpath(await mkdtemp(join(tmpdir(), 'portolan-start-')))
    await chmod(parent, 0o755)
  })

  afterEach(async () => {
    await Promise.all(writers.splice(0).map((writer) => endWriter(writer, 'SIGTERM')))
    await rm(parent, { recursive: true, force: true })
  })

  const start = async (directory: string, user = {}): Promise<Writer> => {
    const writer = startWriter(directory, { binaries: await embeddedBinaries(), ...user })
    writers.push(writer)
    return writer
  }

  test('is used by one of two that start at the same moment', async () => {
    const both = [await start(join(parent, 'data')), await start(join(parent, 'data'))]
    const said = await Promise.all(
      both.map((writer) => Promise.any([writer.heard('ready'), writer.heard('failed')])),
    )
    const winner = both.find((_, index) => said[index]?.startsWith('ready'))
    const refusals = said.filter((line) => line.startsWith('failed'))
    expect(refusals).toEqual([
      `failed Another Portolan (pid ${winner?.child.pid}) is using ${join(parent, 'data')}.`,
    ])
    await winner?.heard('written ')
  })

  test('may lie deeper than a socket path may be long', async () => {
    const deep = join(parent, 'd'.repeat(60), 'e'.repeat(60))
    await (await start(deep)).heard('written ')
    expect(layoutOf(deep).socket.length).toBeLessThan(90)
  })

  test.skipIf(!isRoot)('below a closed directory is refused to root with the way out', async () => {
    const closed = join(parent, 'closed')
    await mkdir(closed, { mode: 0o700 })
    const line = await (await start(join(closed, 'data'))).heard('failed')
    expect(line).toContain(`cannot enter ${closed}`)
    expect(line).toContain('/var/lib/portolan')
  })

  // Needs root to become another user, and a project that the other user can read.
  test.skipIf(!isRoot || !reachable)('works for an ordinary user, and then for root', async () => {
    const home = join(parent, 'home')
    await mkdir(home)
    await chown(home, unprivileged.uid, unprivileged.gid)
    const data = join(home, 'data')
    const ordinary = await start(data, unprivileged)
    await ordinary.heard('written ')
    await endWriter(ordinary, 'SIGTERM')

    const root = await start(data, { number: 2 })
    await root.heard('written ')
    await endWriter(root, 'SIGTERM')

    const again = await start(data, { ...unprivileged, number: 3 })
    await again.heard('written ')
  })
})
