import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { installPackage } from './debian.ts'

/** A real server of a test's own, on a unix socket. */
export type RedisServer = {
  /** What `connectRedis` takes as url. */
  url: string
  start(): Promise<void>
  /** Dies without a chance to save anything. */
  kill(): Promise<void>
  /** Accepts and buffers, but answers nothing. */
  pause(): void
  resume(): void
  stop(): Promise<void>
}

const BINARIES = ['redis-server', 'valkey-server']

const findBinary = (): string | undefined =>
  BINARIES.find((name) => spawnSync(name, ['--version']).status === 0)

const installBinary = async (): Promise<string | undefined> => {
  await installPackage('redis-server')
  return findBinary()
}

const isUp = async (path: string): Promise<boolean> => {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/**
 * Starts a server; undefined, with the reason printed, on a machine that has none and cannot
 * install it. In CI that is an error, so that the suite is not skipped unnoticed.
 */
export const startRedis = async ({ persistent = false } = {}): Promise<RedisServer | undefined> => {
  const binary = findBinary() ?? (await installBinary())
  if (binary === undefined) {
    const reason = 'no redis-server here, and it cannot be installed (apt-get, as root)'
    if (process.env.CI) throw new Error(reason)
    console.warn(`skipped: ${reason}`)
    return undefined
  }
  const dir = await mkdtemp(join(tmpdir(), 'redis-'))
  const path = join(dir, 'redis.sock')
  let child: ChildProcess | undefined

  const start = async (): Promise<void> => {
    const durability = persistent ? ['--appendonly', 'yes', '--appendfsync', 'always'] : []
    const args = ['--port', '0', '--unixsocket', path, '--dir', dir, '--save', '', ...durability]
    const started = spawn(binary, args, { stdio: 'ignore' })
    child = started
    while (!(await isUp(path))) {
      if (started.exitCode !== null) throw new Error(`${binary} exited with ${started.exitCode}`)
      await delay(10)
    }
  }

  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  // A test run that is broken off must not leave servers behind.
  const endWithUs = () => child?.kill('SIGKILL')
  process.once('exit', endWithUs)

  await start()
  return {
    url: path,
    start,
    kill,
    pause: () => child?.kill('SIGSTOP'),
    resume: () => child?.kill('SIGCONT'),
    stop: async () => {
      process.off('exit', endWithUs)
      await kill()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
