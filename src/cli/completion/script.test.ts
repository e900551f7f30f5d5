import { Command } from 'commander'
import { expect, test } from 'vitest'
import { completionScript } from './script.ts'

const program = () => {
  const root = new Command('portolan').option('--config <file>', "the operator's file")
  const group = root.command('keys').description('Keys: all of them.')
  group.command('create').option('--name <name>', 'what it is for')
  return root
}

test('bash', () => {
  const script = completionScript(program(), 'bash')
  expect(script).toContain(`    '') choices="keys --config --help" ;;`)
  expect(script).toContain(`    'keys create') choices="--name --config --help" ;;`)
  expect(script).toMatch(/'call admin'\) choices="[^"]*\bGetOrganizationByDomain\b/)
})

test('zsh quotes what descriptions hold', () => {
  const script = completionScript(program(), 'zsh')
  expect(script).toContain(`'keys:Keys: all of them.'`)
  expect(script).toContain(`'--config:the operator'\\''s file'`)
})

test('fish', () => {
  const script = completionScript(program(), 'fish')
  expect(script).toContain(`complete -c portolan -n '__portolan_path keys' -f -a 'create' -d ''`)
  expect(script).toContain(`-d 'the operator\\'s file'`)
})
