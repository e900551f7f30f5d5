import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const program = join(root, 'bin/portolan.js')
// Runs in every Node before the program, so that the last line is of the process that remains.
const print = 'data:text/javascript,console.log("flags",JSON.stringify(process.execArgv))'

const flagsOf = async (execArgv: readonly string[], options = ''): Promise<string[]> => {
  const { stdout } = await run(process.execPath, [...execArgv, program, 'start', '--help'], {
    env: { ...process.env, NODE_OPTIONS: `${options} --import=${print.replaceAll('"', "'")}` },
  })
  const lines = stdout.split('\n').filter((line) => line.startsWith('flags '))
  return JSON.parse(lines.at(-1)!.slice(6))
}

test.each<[string, string[], string, string[]]>([
  ['none', [], '', ['--v8-pool-size=1', '--max-semi-space-size=8']],
  [
    'one on the command line',
    ['--max-semi-space-size=32'],
    '',
    ['--max-semi-space-size=32', '--v8-pool-size=1'],
  ],
  ['one in NODE_OPTIONS', [], '--max_semi_space_size=32', ['--v8-pool-size=1']],
  [
    'another size of the same space',
    ['--min-semi-space-size=16'],
    '',
    ['--min-semi-space-size=16', '--v8-pool-size=1'],
  ],
  ['both', ['--v8-pool-size=2'], '"--max-semi-space-size=32"', ['--v8-pool-size=2']],
])(
  'the flags of the operator win over those of the program: %s',
  async (_, given, options, flags) => {
    expect(await flagsOf(given, options)).toEqual(flags)
  },
)
