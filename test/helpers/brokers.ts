import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { installPackage } from './debian.ts'
import { freePort } from './free-port.ts'
import { waitFor } from './wait-for.ts'

/** A real broker of a test's own on the loopback interface. */
export type Broker = {
  /** A host and a port. */
  server: string
  start(): Promise<void>
  /** Dies without a chance to answer anything. */
  kill(): Promise<void>
  /** Accepts connections, but answers nothing. */
  pause(): void
  resume(): void
  stop(): Promise<void>
}

/** Finds or installs a program of Debian. Undefined, with the reason printed, where that fails; in CI an error. */
export const findProgram = async (
  name: string,
  versionOption: string,
): Promise<string | undefined> => {
  const isThere = () => spawnSync(name, [versionOption]).error === undefined
  if (!isThere()) await installPackage(name)
  if (isThere()) return name
  const reason = `no ${name} here, and it cannot be installed (apt-get, as root)`
  if (process.env.CI) throw new Error(reason)
  console.warn(`skipped: ${reason}`)
  return undefined
}

const accepts = async (port: number): Promise<boolean> => {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** Ends with this process, also where a test run is broken off. */
const supervise = () => {
  let child: ChildProcess | undefined
  const endWithUs = () => child?.kill('SIGKILL')
  process.once('exit', endWithUs)
  return {
    begin: (started: ChildProcess) => {
      child = started
    },
    signal: (name: NodeJS.Signals) => void child?.kill(name),
    kill: async () => {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
    forget: () => void process.off('exit', endWithUs),
  }
}

/** Starts nats-server with JetStream on a directory that outlives a kill. */
export const startNats = async (): Promise<Broker | undefined> => {
  const program = await findProgram('nats-server', '--version')
  if (program === undefined) return undefined
  const directory = await mkdtemp(join(tmpdir(), 'nats-'))
  const port = await freePort()
  const process = supervise()
  const start = async () => {
    process.begin(
      spawn(program, ['-a', '127.0.0.1', '-p', `${port}`, '-js', '-sd', directory], {
        stdio: 'ignore',
      }),
    )
    await waitFor('nats-server accepts', () => accepts(port))
  }
  await start()
  return {
    server: `127.0.0.1:${port}`,
    start,
    kill: process.kill,
    pause: () => process.signal('SIGSTOP'),
    resume: () => process.signal('SIGCONT'),
    stop: async () => {
      process.forget()
      await process.kill()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/**
 * Starts the mock cluster of librdkafka, which speaks the protocol of Kafka and keeps records in memory: a kill loses them.
 * The cluster chooses a port with each start. Clients begin at one that stays, as behind the name of a real cluster, and
 * find the others in what it announces.
 */
export const startKafka = async (): Promise<Broker | undefined> => {
  const program = await findProgram('kcat', '-V')
  if (program === undefined) return undefined
  const process = supervise()
  let announced = 0
  const sockets = new Set<Socket>()
  const front = createServer((socket) => {
    const target = connect(announced, '127.0.0.1')
    for (const [one, other] of [
      [socket, target],
      [target, socket],
    ] as const) {
      sockets.add(one)
      one.on('error', () => {})
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
    socket.pipe(target)
    target.pipe(socket)
  })
  const port = await freePort()
  const shut = () => {
    front.close()
    for (const socket of sockets) socket.destroy()
  }
  const start = async () => {
    announced = 0
    // Debian builds kcat without its option -M. A producer that waits for input keeps the cluster as well.
    const mock = ['-X', 'test.mock.num.brokers=1', '-d', 'mock']
    const args = ['-P', '-b', 'replaced:1', '-t', 'kept', ...mock]
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] })
    process.begin(child)
    let text = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (some: string) => {
        if (announced === 0) text += some
      })
    await waitFor('the mock cluster names its brokers', () => {
      announced = Number(/replaced with 127\.0\.0\.1:(\d+)/.exec(text)?.[1] ?? 0)
      return announced !== 0
    })
    front.listen(port, '127.0.0.1')
    await once(front, 'listening')
  }
  await start()
  return {
    server: `127.0.0.1:${port}`,
    start,
    kill: async () => {
      await process.kill()
      shut()
    },
    pause: () => process.signal('SIGSTOP'),
    resume: () => process.signal('SIGCONT'),
    stop: async () => {
      process.forget()
      await process.kill()
      shut()
    },
  }
}

const run = promisify(execFile)

/** A record as kcat prints it. */
export type KafkaRecord = { key: string; partition: number; offset: number; payload: string }

/** All records of a topic. */
export const readTopic = async (server: string, topic: string): Promise<KafkaRecord[]> => {
  const args = ['-C', '-b', server, '-t', topic, '-o', 'beginning', '-e', '-q', '-J']
  const { stdout } = await run('kcat', args, { timeout: 30_000, maxBuffer: 2 ** 26 })
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as KafkaRecord)
}
