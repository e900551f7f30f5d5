import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { locate } from './locate.ts'
import { callRpc } from './rpc.ts'

/** A running anvil. */
export type Anvil = {
  url: string
  wsUrl: string
  port: number
  pid: number
  /** Makes a JSON-RPC call and returns its result; throws on an error. */
  call<result = unknown>(method: string, params?: unknown[]): Promise<result>
  stop(): Promise<void>
  /** Dies without saying anything to its clients. */
  kill(): Promise<void>
  /** Keeps its connections open, but answers nothing. */
  pause(): void
  resume(): void
}

/** What can be chosen of an anvil. */
export type AnvilOptions = {
  /** 0 for any free one. */
  port?: number
  chainId?: number
  /** Unix time of the genesis block: equal ones give equal chains. */
  timestamp?: number
  /** Further arguments for the program. */
  args?: string[]
  startTimeoutMs?: number
  /** Not reached by the Ctrl-C of the terminal: its parent stops it. */
  isDetached?: boolean
}

/** Starts an anvil and waits until it answers. */
export async function startAnvil(options: AnvilOptions = {}): Promise<Anvil> {
  const program = await locate('anvil')
  for (let attempt = 1; ; attempt++) {
    const port = options.port || (await freePort())
    try {
      return await start(program, port, options)
    } catch (error) {
      // Another process may have taken the port in between.
      if (options.port || attempt === 3) throw error
    }
  }
}

async function start(program: string, port: number, options: AnvilOptions): Promise<Anvil> {
  const { chainId, timestamp, args = [], startTimeoutMs = 60_000, isDetached = false } = options
  const child = spawn(
    program,
    [
      ...['--host', '127.0.0.1', '--port', `${port}`, '--silent'],
      ...(chainId === undefined ? [] : ['--chain-id', `${chainId}`]),
      ...(timestamp === undefined ? [] : ['--timestamp', `${timestamp}`]),
      ...args,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], detached: isDetached },
  )
  let complaint = ''
  child.stderr.on('data', (text) => {
    complaint = `${complaint}${text}`.slice(-2_000)
  })
  child.on('error', (error) => {
    complaint = error.message
  })
  // A program that is broken off must not leave nodes behind.
  const endWithUs = () => child.kill('SIGKILL')
  process.once('exit', endWithUs)
  child.once('exit', () => process.off('exit', endWithUs))

  const url = `http://127.0.0.1:${port}`
  const deadline = Date.now() + startTimeoutMs
  while (!(await answers(url))) {
    if (hasEnded(child) || child.pid === undefined)
      throw new Error(`anvil did not start: ${complaint.trim() || `exit code ${child.exitCode}`}`)
    if (Date.now() > deadline) {
      await end(child, 'SIGKILL')
      throw new Error(`anvil did not answer within ${startTimeoutMs} ms`)
    }
    await delay(20)
  }
  return {
    url,
    wsUrl: `ws://127.0.0.1:${port}`,
    port,
    pid: child.pid!,
    call: (method, params = []) => callRpc(url, method, params),
    stop: () => end(child, 'SIGTERM'),
    kill: () => end(child, 'SIGKILL'),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null

async function end(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (hasEnded(child)) return
  const exited = once(child, 'exit')
  // A paused process does not notice any other signal.
  child.kill('SIGCONT')
  child.kill(signal)
  // Writing a large state takes a while.
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await exited
  clearTimeout(timer)
}

const answers = (url: string): Promise<boolean> =>
  callRpc(url, 'web3_clientVersion', [], 1_000).then(
    (version) => `${version}`.startsWith('anvil'),
    () => false,
  )

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}
