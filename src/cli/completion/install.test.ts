import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { promisify } from 'node:util'
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

test('without the package bash-completion, .bashrc loads the script, by one line', async () => {
  const home = await mkdtemp(join(tmpdir(), 'portolan-completion-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  await writeFile(join(home, '.bashrc'), 'alias ll="ls -l"')
  const shell = shellWith({ HOME: home, SHELL: '/bin/bash' })
  for (const _ of [1, 2]) await installCompletion(shell, program, undefined, false)
  const script = `${home}/.local/share/bash-completion/completions/portolan`
  expect(await readFile(join(home, '.bashrc'), 'utf8')).toBe(
    `alias ll="ls -l"\n[ -r '${script}' ] && . '${script}'\n`,
  )
  // A bash that has read it completes.
  const asked = 'complete -p portolan'
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', `. ~/.bashrc; ${asked}`], {
    env: { ...process.env, HOME: home },
    timeout: 10_000,
  })
  expect(stdout).toContain('portolan')
})

test('another shell is refused with those that are known', async () => {
  const shell = shellWith({ HOME: '/nowhere', SHELL: '/bin/tcsh' })
  await expect(installCompletion(shell, program, undefined)).rejects.toThrow(
    'Name your shell: bash, zsh, fish. "tcsh" is none of them.',
  )
})
