import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freshFolder, portolan, runCommand } from './portolan.ts'

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

test('bash completes the chains, networks and operations of the configuration', async () => {
  const cwd = await freshFolder()
  const upstreams = '[{ url: "http://127.0.0.1:1" }]'
  await writeFile(
    join(cwd, 'portolan.yaml'),
    `chains:
  base: { variant: C, networks: { mainnet: { upstreams: ${upstreams} }, sepolia: { upstreams: ${upstreams} } } }
  queries: { variant: Q, networks: { mainnet: { upstreams: ${upstreams} } } }`,
  )
  const words = async (...path: string[]) => {
    const { stdout } = await runCommand(['__words', ...path], { cwd })
    return stdout.split('\n').filter(Boolean)
  }
  expect(await words('call')).toEqual(['base', 'base/sepolia', 'queries'])
  expect(await words('backfill')).toEqual(['base', 'base/sepolia', 'queries'])
  expect(await words('call', 'base/sepolia')).toContain('ListWallets')
  expect(await words('call', 'base')).not.toContain('GetBlock')
  expect(await words('call', 'queries')).toContain('GetBlock')
  expect(await words('call', 'unknown')).toEqual([])
  expect(await words('keys')).toEqual([])

  // The script asks `portolan`, here a stand-in that prints what it was asked.
  const { stdout } = await portolan(['completion', 'bash'])
  const file = join(cwd, 'portolan.bash')
  await writeFile(file, `${stdout}\nportolan() { printf '%s\\n' "asked-$*" base/sepolia; }`)
  const script = `source ${file}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _portolan; printf '%s\\n' "\${COMPREPLY[@]}"`
  const complete = (...typed: string[]) =>
    spawnSync('bash', ['-c', script, 'bash', 'portolan', ...typed])
      .stdout.toString()
      .trim()
  expect(complete('call', 'base/')).toBe('base/sepolia')
  expect(complete('call', 'base', 'asked')).toBe('asked-__words')
  expect(complete('keys', 'base/')).toBe('')
})

test('the operations of a chain of the configuration are listed', async () => {
  const cwd = await freshFolder()
  await writeFile(
    join(cwd, 'portolan.yaml'),
    'chains: { base: { variants: [C, Q], networks: { mainnet: { upstreams: [{ url: "http://127.0.0.1:1" }] } } } }',
  )
  const list = async (...args: string[]) =>
    (await runCommand(['call', '--list', ...args], { cwd })).stdout
  expect(await list('base')).toMatch(/RegisterWallet[\s\S]*GetBlock|GetBlock[\s\S]*RegisterWallet/)
  expect(await list('base', 'GetBlock')).toContain('q GetBlock')
  expect(await list('base', 'RegisterWallet')).toContain('c RegisterWallet')
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
