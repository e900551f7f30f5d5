import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { DevFacts, DevTag, FromKeeper, ToKeeper } from '../../../devnet/keeper-messages.ts'
import type { Log } from '../../lib/log.ts'
import { keeperProgram } from './local-chains.ts'

/** The local chains of the embedded mode, in a process of their own. */
export type ChainKeeper = {
  /** Those that run. */
  facts: Partial<Record<DevTag, DevFacts>>
  /** Those that could not be started, and why. */
  failed: Partial<Record<DevTag, string>>
  /** Sends native coin to an address; the transaction's hash as the variant prints it. */
  fund(chain: DevTag, address: string, amount: bigint): Promise<string>
  /** Replaces the newest blocks of chain c. */
  reorganize(depth: number): Promise<void>
  /** Makes blocks of a chain now. */
  mine(chain: DevTag, blocks: number): Promise<void>
  /** Ends the node of a chain; its state stays. */
  stopNode(chain: DevTag): Promise<void>
  /** Starts it again, at its address. */
  startNode(chain: DevTag): Promise<void>
  /** Whether the node of a chain is running. */
  isUp(chain: DevTag): boolean
  /** Sends something to these addresses every few seconds. */
  startTraffic(targets: Partial<Record<DevTag, string>>): void
  stop(): Promise<void>
}

/** A local chain refused what it was asked for; the message says why. */
export class DevChainError extends Error {
  override name = 'DevChainError'
}

// Fetching the programs of the chains may be part of the first start.
const startTimeoutMs = 300_000
const requestTimeoutMs = 30_000
const stopTimeoutMs = 15_000
const maxWaiting = 1_000
const maxOutput = 4_000

/** The line of a stack that says what is wrong. */
const errorLine = (output: string): string | undefined =>
  output.split('\n').find((line) => /^\w*Error\b/.test(line))

/** Starts the local chains and waits until each runs or has failed. */
export async function startChainKeeper(options: {
  directory: string
  tags: readonly DevTag[]
  log: Log
  /** Gives up waiting for them. */
  signal?: AbortSignal | undefined
  onReorganized(depth: number): void
}): Promise<ChainKeeper> {
  const { directory, tags, log, signal, onReorganized } = options
  signal?.throwIfAborted()
  const facts: ChainKeeper['facts'] = {}
  const failed: ChainKeeper['failed'] = {}
  const waiting = new Map<number, PromiseWithResolvers<string>>()
  // Nodes that were stopped on request, so that `isUp` needs no question to the child.
  const down = new Set<DevTag>()
  const ready = Promise.withResolvers<void>()
  let nextId = 1
  let isStopping = false

  log.debug({ chains: tags }, 'starting the local chains')
  const child = fork(keeperProgram, [directory, tags.join(',')], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    execArgv: [
      // A warning of a library is none of the operator's.
      '--disable-warning=ExperimentalWarning',
      // No client waits for its blocks: memory matters more here than time.
      ...['--max-semi-space-size=1', '--heap-growing-percent=30'],
    ],
  })
  const exited = once(child, 'exit')
  // The end of the error output explains why the process ended.
  let lastOutput = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    lastOutput = `${lastOutput}${text}`.slice(-maxOutput)
    log.debug({ text }, 'local chains')
  })
  child.on('message', (message: FromKeeper) => {
    switch (message.kind) {
      case 'fetching':
        log.info({ chains: message.chains }, 'fetching the programs of local chains')
        break
      case 'started':
        facts[message.chain] = message.facts
        log.debug({ chain: message.chain }, 'local chain started')
        break
      case 'failed':
        failed[message.chain] = message.reason
        log.warn({ chain: message.chain, reason: message.reason }, 'local chain cannot be started')
        break
      case 'ready':
        ready.resolve()
        break
      case 'reorganized':
        onReorganized(message.depth)
        break
      default:
        settle(message)
    }
  })
  const settle = (message: Extract<FromKeeper, { id: number }>) => {
    const { resolve, reject } = waiting.get(message.id) ?? {}
    waiting.delete(message.id)
    if (message.kind === 'done') resolve?.(message.result)
    else reject?.(new DevChainError(message.reason))
  }
  child.once('exit', (code) => {
    const reason = errorLine(lastOutput)
    const error = new DevChainError(`The local chains have stopped${reason ? `: ${reason}` : '.'}`)
    ready.reject(error)
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
    if (!isStopping) log.error({ code, reason }, 'the local chains have stopped; start again')
  })

  const send = (message: ToKeeper) => {
    if (child.connected) child.send(message)
  }
  const ask = async (make: (id: number) => ToKeeper): Promise<string> => {
    if (!child.connected || waiting.size >= maxWaiting)
      throw new DevChainError('The local chains are unreachable.')
    const id = nextId++
    const answer = Promise.withResolvers<string>()
    waiting.set(id, answer)
    const timer = setTimeout(() => {
      waiting.delete(id)
      answer.reject(new DevChainError('The local chain did not answer in time.'))
    }, requestTimeoutMs)
    try {
      send(make(id))
      return await answer.promise
    } finally {
      clearTimeout(timer)
    }
  }
  const stop = async () => {
    isStopping = true
    if (child.exitCode !== null || child.signalCode !== null) return
    // The child ends by itself when the channel closes, so that a killed service leaves none
    // behind.
    if (child.connected) child.disconnect()
    const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
    await exited
    clearTimeout(timer)
  }

  const late = setTimeout(
    () => ready.reject(new DevChainError('The local chains did not start in time.')),
    startTimeoutMs,
  )
  const giveUp = () => ready.reject(signal?.reason)
  signal?.addEventListener('abort', giveUp)
  if (signal?.aborted) giveUp()
  try {
    await ready.promise
  } catch (error) {
    await stop()
    throw error
  } finally {
    clearTimeout(late)
    signal?.removeEventListener('abort', giveUp)
  }
  return {
    facts,
    failed,
    fund: (chain, address, amount) =>
      ask((id) => ({ kind: 'fund', id, chain, address, amount: `${amount}` })),
    reorganize: async (depth) => {
      await ask((id) => ({ kind: 'reorganize', id, depth }))
    },
    mine: async (chain, blocks) => {
      await ask((id) => ({ kind: 'mine', id, chain, blocks }))
    },
    stopNode: async (chain) => {
      await ask((id) => ({ kind: 'stop', id, chain }))
      down.add(chain)
    },
    startNode: async (chain) => {
      await ask((id) => ({ kind: 'start', id, chain }))
      down.delete(chain)
    },
    isUp: (chain) => facts[chain] !== undefined && !down.has(chain),
    startTraffic: (targets) => send({ kind: 'traffic', targets }),
    stop,
  }
}
