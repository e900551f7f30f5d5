import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { lockDataDir, startWaitMs } from './lock.ts'

const root = await realpath(await mkdtemp(join(tmpdir(), 'portolan-lock-')))
afterAll(() => rm(root, { recursive: true, force: true }))

const module = join(import.meta.dirname, 'lock.ts')
const program = `
  const { lockDataDir } = await import(process.argv[1])
  try { await lockDataDir(process.argv[2]); console.log('locked') } catch (error) { console.log(error.message) }
  setInterval(() => {}, 1000)`

const holdInProcess = async (directory: string) => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, module, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = await once(child.stdout, 'data')
  const kill = async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  return { pid: child.pid, said: String(said).trim(), kill }
}

test('one holder at a time, also within a process', async () => {
  const directory = join(root, 'one')
  const lock = await lockDataDir(directory)
  const refusal = `Another Portolan (pid ${process.pid}) is using ${directory}.`
  await expect(lockDataDir(directory)).rejects.toThrow(refusal)
  const other = await holdInProcess(directory)
  expect(other.said).toBe(refusal)
  await other.kill()
  await lock.release()
  await lock.release()
  await (await lockDataDir(directory)).release()
})

test('a killed holder leaves no lock, whatever process has its id now', async () => {
  const directory = join(root, 'two')
  const holder = await holdInProcess(directory)
  expect(holder.said).toBe('locked')
  await expect(lockDataDir(directory)).rejects.toThrow(`(pid ${holder.pid})`)
  await holder.kill()
  const lock = await lockDataDir(directory)
  expect(await readFile(join(directory, 'portolan.pid'), 'utf8')).toBe(`${process.pid}\n`)
  await lock.release()
})

test('a start waits for a holder that is about to end', async () => {
  const directory = join(root, 'waits')
  const holder = await lockDataDir(directory)
  const starting = lockDataDir(directory, startWaitMs)
  await delay(700)
  await holder.release()
  await (await starting).release()
})

test('of many simultaneous starters one wins, also over a stale lock', async () => {
  const directory = join(root, 'three')
  await (await holdInProcess(directory)).kill()
  const starters = await Promise.all(Array.from({ length: 4 }, () => holdInProcess(directory)))
  expect(starters.filter(({ said }) => said === 'locked')).toHaveLength(1)
  await Promise.all(starters.map((starter) => starter.kill()))
})

test('a concurrent attempt does not block another process', async () => {
  const directory = join(root, 'four')
  await (await lockDataDir(directory)).release()
  // A step on the way to the lock: who is refused goes back from here a moment later.
  const passing = new DatabaseSync(join(directory, 'portolan.lock'))
  passing.exec('begin')
  passing.prepare('select count(*) from sqlite_schema').get()
  const locking = lockDataDir(directory)
  await delay(100)
  passing.close()
  await (await locking).release()
})
