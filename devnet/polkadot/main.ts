import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { startPolkadotDevChain } from './node.ts'
import type { ChainSpec } from './spec.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string' },
    directory: { type: 'string' },
    seed: { type: 'string' },
    'block-time': { type: 'string' },
    finality: { type: 'string' },
    spec: { type: 'string' },
    manual: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) {
  process.stdout.write(
    'node devnet/polkadot/main.ts [--port 9944] [--directory folder] [--seed 0]\n' +
      '  [--block-time milliseconds] [--finality blocks] [--manual] [--spec file]\n' +
      'Runs a Polkadot Asset Hub of one node and prints one line of JSON when it is ready.\n' +
      '--spec: a raw chain specification of another parachain, whose runtime is run instead.\n',
  )
} else await run()

async function run(): Promise<void> {
  const number = (text: string | undefined, name: string): number | undefined => {
    if (text === undefined) return undefined
    if (!/^\d{1,9}$/.test(text)) throw new Error(`--${name} must be a whole number`)
    return Number(text)
  }
  const port = number(values.port, 'port')
  const seed = number(values.seed, 'seed')
  const blockTimeMs = number(values['block-time'], 'block-time')
  const finality = number(values.finality, 'finality')
  const { spec } = values
  const node = await startPolkadotDevChain({
    manual: values.manual,
    ...(spec !== undefined && { spec: JSON.parse(await readFile(spec, 'utf8')) as ChainSpec }),
    ...(port !== undefined && { port }),
    ...(values.directory !== undefined && { directory: values.directory }),
    ...(seed !== undefined && { seed }),
    ...(blockTimeMs !== undefined && { blockTimeMs }),
    ...(finality !== undefined && { finality }),
  })
  const { node_url, faucet_address, faucet_key, genesis_hash, ss58_prefix } = node
  const facts = { node_url, faucet_address, faucet_key, genesis_hash, ss58_prefix }
  process.stdout.write(`${JSON.stringify(facts)}\n`)
  const stop = () => void node.stop().then(() => process.exit(0))
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
}
