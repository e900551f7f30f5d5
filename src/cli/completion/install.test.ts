import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { Command } from 'commander'
import { expect, onTestFinished, test } from 'vitest'
import { installCompletion } from './install.ts'

const program = new Command('portolan')
program.command('start')

const shellWith = (env: Record<string, string>) => ({
  env,
  cwd: '/',
  stdin: Readable.from([]),
  stdout: new PassThrough(),
  stderr: new PassThrough(),
  setExitCode: () => {},
})

test.each([
  ['/bin/bash', '.local/share/bash-completion/completions/portolan', 'complete -o default'],
  ['/usr/bin/zsh', '.local/share/zsh/site-functions/_portolan', '#compdef portolan'],
  ['/usr/bin/fish', '.config/fish/completions/portolan.fish', 'complete'],
])('the script of %s is written to where it looks', async (path, place, text) => {
  const home = await mkdtemp(join(tmpdir(), 'portolan-completion-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  await installCompletion(shellWith({ HOME: home, SHELL: path }), program, undefined)
  expect(await readFile(join(home, place), 'utf8')).toContain(text)
})

test('another shell is refused with those that are known', async () => {
  const shell = shellWith({ HOME: '/nowhere', SHELL: '/bin/tcsh' })
  await expect(installCompletion(shell, program, undefined)).rejects.toThrow(
    'Name your shell: bash, zsh, fish. "tcsh" is none of them.',
  )
})
