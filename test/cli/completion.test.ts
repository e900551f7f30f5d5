import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freshFolder, portolan } from './portolan.ts'

test('bash completes commands, operations and options', async () => {
  const { stdout } = await portolan(['completion', 'bash'])
  const file = join(await freshFolder(), 'portolan.bash')
  await writeFile(file, stdout)
  const complete = (...words: string[]) => {
    const script = `source ${file}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _portolan; printf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout } = spawnSync('bash', ['-c', script, 'bash', 'portolan', ...words])
    return stdout.toString().trim().split('\n')
  }
  expect(complete('or')).toEqual(['organizations'])
  expect(complete('keys', '')).toEqual(expect.arrayContaining(['list', 'create', 'revoke']))
  expect(complete('call', 'admin', 'GetOrganizationB')).toEqual(['GetOrganizationByDomain'])
  expect(complete('start', '--p')).toEqual(['--port'])
  expect(complete('completion', 'z')).toEqual(['zsh'])
})

test.each(['zsh', 'fish'])('%s reads its script', async (shell) => {
  const { code, stdout } = await portolan(['completion', shell])
  expect(code).toBe(0)
  expect(stdout).toContain('GetOrganizationByDomain')
  const checked = spawnSync(shell, ['-n'], { input: stdout })
  // Only where the machine has that shell.
  if (!checked.error) expect(checked.stderr.toString()).toBe('')
})

test('another shell is refused', async () => {
  expect(await portolan(['completion', 'powershell'])).toMatchInlineSnapshot(`
    {
      "code": 2,
      "stderr": "Command-argument value 'powershell' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.
    ",
      "stdout": "",
    }
  `)
})
