import { expect, it, test } from 'vitest'
import { processFlags } from './member.ts'

const none = { execArgv: [], options: '' }
const [helper, short] = ['--v8-pool-size=1', '--max-semi-space-size=8']

it('processes that serve requests have short collections, those that only follow chains the default', () => {
  expect(processFlags(['api', 'gateway', 'console'], none)).toContain(short)
  expect(processFlags(['gateway', 'tracker'], none)).toContain(short)
  expect(processFlags(['tracker', 'courier', 'sender'], none)).not.toContain(short)
})

test.each<[string, string[], string, string[], string[]]>([
  ['those of the first process are no choice', [helper, short], '', [helper, short], [helper]],
  [
    'on the command line',
    ['--max-semi-space-size=32', helper],
    '',
    ...same(['--max-semi-space-size=32', helper]),
  ],
  [
    'with the value as an argument of its own',
    ['--v8-pool-size', '4', '--max-semi-space-size', '32'],
    '',
    ...same(['--v8-pool-size=4', '--max-semi-space-size=32']),
  ],
  ['in NODE_OPTIONS, which processes inherit', [], '--max_semi_space_size=32', ...same([helper])],
  ['in quotes', [], '--trace-warnings "--v8-pool-size=2"', [short], []],
  [
    'another size of the space',
    ['--min-semi-space-size=16'],
    '',
    ...same(['--min-semi-space-size=16', helper]),
  ],
])('flags of the operator win in every process: %s', (_, execArgv, options, api, tracker) => {
  expect(processFlags(['api'], { execArgv, options })).toEqual(api)
  expect(processFlags(['tracker'], { execArgv, options })).toEqual(tracker)
})

function same(flags: string[]): [string[], string[]] {
  return [flags, flags]
}
