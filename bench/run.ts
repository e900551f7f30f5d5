import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** Every figure, one program after the other; name one to run it alone: `npm run bench -- start`. */
const benches = [
  'start',
  'networks',
  'operations',
  'tracing',
  'query',
  'gateway',
  'fanout',
  'scale',
  'sharing',
  'tracker',
  'transactions',
  'polkadot',
  'sui',
  'ton',
  'verification',
  'deliveries',
  'disk',
  'console',
  'readme',
]

const wanted = process.argv.slice(2)
for (const name of benches.filter((bench) => wanted.length === 0 || wanted.includes(bench))) {
  const child = spawn(process.execPath, [join(import.meta.dirname, `${name}.ts`)], {
    stdio: 'inherit',
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) process.exitCode = 1
}
