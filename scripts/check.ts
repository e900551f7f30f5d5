// `npm run check`: types, lint, dead code and generated documents, then the unit tests. The first four run side by side:
// parts of each use one core only. Each prints when it has ended, so that their lines do not mix.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const root = join(import.meta.dirname, '..')
const bin = (name: string) => join(root, 'node_modules/.bin', name)
// The names of programs on Windows are scripts.
const shell = process.platform === 'win32'
const color = process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}

type Step = { name: string; program: string; args: string[] }

// More checkers repeat work of each other: four take 46 s of CPU, two 36.
const types: Step = { name: 'tsc', program: bin('tsc'), args: ['--checkers', '2'] }
const others: Step[] = [
  { name: 'biome', program: bin('biome'), args: ['check', '.'] },
  { name: 'knip', program: bin('knip'), args: [] },
  { name: 'generate', program: process.execPath, args: ['scripts/generate.ts', '--check'] },
]

async function run({ name, program, args }: Step): Promise<boolean> {
  const began = performance.now()
  const child = spawn(program, args, { cwd: root, shell, env: { ...process.env, ...color } })
  const ended = once(child, 'close')
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = await ended
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  process.stdout.write(`${name}: ${code === 0 ? 'ok' : 'failed'}, ${seconds} s\n${out}${err}`)
  return code === 0
}

/** One after the other, also after a failure: one run shows everything that is wrong. */
async function runAll(steps: readonly Step[]): Promise<boolean> {
  let isFine = true
  for (const step of steps) isFine = (await run(step)) && isFine
  return isFine
}

const fine = await Promise.all([run(types), runAll(others)])
if (fine.includes(false)) process.exit(1)
const unit = spawn(bin('vitest'), ['run', '--project', 'unit'], {
  ...{ cwd: root, shell, stdio: 'inherit' },
})
const [code] = await once(unit, 'close')
process.exit(code ?? 1)
