import { parseArgs } from 'node:util'
import { startTonDevChain } from './ton-dev-chain.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string' },
    directory: { type: 'string' },
    seed: { type: 'string' },
    'block-time-ms': { type: 'string' },
    'global-id': { type: 'string' },
  },
})

const number = (text: string | undefined, name: string): number | undefined => {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new Error(`--${name}: a whole number is expected`)
  return value
}

const port = number(values.port, 'port')
const seed = number(values.seed, 'seed')
const blockTimeMs = number(values['block-time-ms'], 'block-time-ms')
const globalId = number(values['global-id'], 'global-id')

const { node_url, faucet_address, faucet_key, stop } = await startTonDevChain({
  ...(port !== undefined && { port }),
  ...(values.directory !== undefined && { directory: values.directory }),
  ...(seed !== undefined && { seed }),
  ...(blockTimeMs !== undefined && { blockTimeMs }),
  ...(globalId !== undefined && { globalId }),
})
process.stdout.write(`${JSON.stringify({ node_url, faucet_address, faucet_key })}\n`)

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    stop().finally(() => process.exit(0))
  })
