import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'

/**
 * The chain as a program. It runs in a thread of its own, because only a thread can be given limits
 * from inside: without them the process takes twice the memory, most of it not yet collected.
 */
const resourceLimits = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 128 }

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url), {
    argv: process.argv.slice(2),
    resourceLimits,
  })
  worker.once('error', (error) => {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
    process.exit(1)
  })
  worker.once('exit', (code) => process.exit(code))
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => worker.postMessage('stop'))
} else await run()

async function run(): Promise<void> {
  const { values } = parseArgs({
    options: {
      port: { type: 'string' },
      directory: { type: 'string' },
      seed: { type: 'string' },
      'block-time-ms': { type: 'string' },
      'global-id': { type: 'string' },
      server: { type: 'string' },
      'requests-per-second': { type: 'string' },
    },
  })
  const number = (
    name: Exclude<keyof typeof values, 'directory' | 'server'>,
  ): number | undefined => {
    const text = values[name]
    if (text === undefined) return undefined
    const value = Number(text)
    if (!Number.isSafeInteger(value)) throw new Error(`--${name}: a whole number is expected`)
    return value
  }
  const port = number('port')
  const seed = number('seed')
  const blockTimeMs = number('block-time-ms')
  const globalId = number('global-id')
  const requestsPerSecond = number('requests-per-second')
  const { server } = values
  if (server !== undefined && server !== 'cpp' && server !== 'python')
    throw new Error('--server: cpp or python is expected')
  // Not at the top: the thread that waits needs nothing of it.
  const { startTonDevChain } = await import('./ton-dev-chain.ts')
  const { node_url, faucet_address, faucet_key, stop } = await startTonDevChain({
    ...(port !== undefined && { port }),
    ...(values.directory !== undefined && { directory: values.directory }),
    ...(seed !== undefined && { seed }),
    ...(blockTimeMs !== undefined && { blockTimeMs }),
    ...(globalId !== undefined && { globalId }),
    ...(server !== undefined && { server }),
    ...(requestsPerSecond !== undefined && { requestsPerSecond }),
  })
  parentPort?.once('message', () => {
    stop().finally(() => process.exit(0))
  })
  process.stdout.write(`${JSON.stringify({ node_url, faucet_address, faucet_key })}\n`)
}
