import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { EmbeddedConnection } from '../../src/storage/embedded/layout.ts'
import { waitFor } from './wait-for.ts'

/** A real streaming replica. */
export type Replica = {
  url: string
  /** Stops replay, so that it lags. */
  pause(): Promise<void>
  resume(): Promise<void>
  promote(): Promise<void>
  kill(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

/** Copies a primary and follows it. */
export const startReplica = async (
  primary: EmbeddedConnection,
  binaries: string,
): Promise<Replica> => {
  const { host, user, database } = primary
  const { uid, gid } = await stat(host)
  const asOwner = process.getuid?.() === 0 ? { uid, gid } : {}
  const directory = await mkdtemp(join(tmpdir(), 'replica-'))
  await chown(directory, uid, gid)
  await chmod(directory, 0o700)
  const data = join(directory, 'data')
  const from = ['-h', host, '-p', `${primary.port}`, '-U', user]
  const copied = spawnSync(
    join(binaries, 'pg_basebackup'),
    [...from, '-D', data, '-R', '-X', 'stream', '-c', 'fast', '--no-sync'],
    { encoding: 'utf8', ...asOwner },
  )
  if (copied.status !== 0) throw new Error(`pg_basebackup failed: ${copied.stderr}`)
  let child: ChildProcess | undefined
  const endWithUs = () => child?.kill('SIGKILL')
  process.once('exit', endWithUs)

  const ask = async (text: string) => {
    const client = new pg.Client({ host: directory, port: primary.port, user, database })
    client.on('error', () => {})
    await client.connect()
    try {
      return await client.query(text)
    } finally {
      await client.end().catch(() => {})
    }
  }
  const start = async () => {
    const settings = [
      'listen_addresses=',
      `unix_socket_directories=${directory}`,
      `port=${primary.port}`,
      'hot_standby=on',
      'fsync=off',
      // Not less than on the primary, else replay would stop.
      'max_connections=200',
    ]
    const args = ['-D', data, ...settings.flatMap((setting) => ['-c', setting])]
    child = spawn(join(binaries, 'postgres'), args, { stdio: 'ignore', ...asOwner })
    await waitFor('the replica answers', () =>
      ask('select 1').then(
        () => true,
        () => false,
      ),
    )
  }
  const kill = async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    // Immediate shutdown, so that its children end too.
    child.kill('SIGQUIT')
    await exited
  }
  await start()
  return {
    url: `postgres:///${database}?host=${encodeURIComponent(directory)}&user=${user}&port=${primary.port}`,
    pause: async () => void (await ask('select pg_wal_replay_pause()')),
    resume: async () => void (await ask('select pg_wal_replay_resume()')),
    promote: async () => void (await ask('select pg_promote()')),
    kill,
    start,
    stop: async () => {
      process.off('exit', endWithUs)
      await kill()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
